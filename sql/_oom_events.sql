-- Out-of-memory events, numbered from the newest of a device.
--
-- Nobody asks the allocator for 0 bytes, and no device has 2^48 bytes left: such numbers are damage and say nothing.
--
-- @kept
-- @column device_id    BIGINT  devices.id.
-- @column trace_index  BIGINT  Position of the event in the device's history.
-- @column newest       BIGINT  1 for the newest of the device.
-- @column time_us      BIGINT  Microseconds since the Unix epoch; NULL without a clock.
-- @column size         BIGINT  Bytes that were asked for, rounded; NULL where the event does not say.
-- @column device_free  BIGINT  Bytes that the driver reported as free; NULL where the event does not say.
-- @column stream       BIGINT  Stream of the request; NULL where the event does not say.
-- @column pool_id_0    BIGINT  First word of the memory pool's id; NULL where the event does not say.
-- @column pool_id_1    BIGINT  Second word; NULL likewise.
-- @column stack_id     BIGINT  Call stack of the request: call_stacks.id; NULL where none was recorded.
SELECT
  device_id,
  trace_index,
  CAST(ROW_NUMBER() OVER (
    PARTITION BY device_id
    ORDER BY trace_index DESC
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS BIGINT) AS newest,
  time_us,
  CASE WHEN size > 0 THEN size END AS size,
  CASE WHEN device_free BETWEEN 0 AND 281474976710655 THEN device_free END AS device_free,
  stream,
  pool_id_0,
  pool_id_1,
  stack_id
FROM traces
WHERE is_workspace = 0
  AND action = 'oom'
