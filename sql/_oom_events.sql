-- Out-of-memory events, numbered from the newest of a device.
--
-- @kept
-- @column device_id    BIGINT  devices.id.
-- @column trace_index  BIGINT  Position of the event in the device's history.
-- @column newest       BIGINT  1 for the newest of the device.
-- @column time_us      BIGINT  Microseconds since the Unix epoch; NULL without a clock.
-- @column size         BIGINT  Bytes that were asked for, rounded; NULL where the event does not say.
-- @column device_free  BIGINT  Bytes that the driver reported as free; NULL where the event does not say.
-- @column stream       BIGINT  Stream of the request; NULL where the event does not say.
-- @column is_private   BIGINT  1 where the request was of a memory pool other than (0, 0); 0 also where the event does not say.
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
  size,
  device_free,
  stream,
  CASE WHEN pool_id_0 <> 0 OR pool_id_1 <> 0 THEN 1 ELSE 0 END AS is_private,
  stack_id
FROM traces
WHERE is_workspace = 0
  AND action = 'oom'
