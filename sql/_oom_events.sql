-- Out-of-memory events, numbered from the newest of a device.
--
-- Nobody asks the allocator for 0 bytes, and no device has 2^48 bytes left: such numbers are damage and say nothing.
--
-- With the setting max_split_size a block of that size and more serves no smaller request, and a request of that size and
-- more takes no block that is larger by 20 MiB or more.
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
-- @column oversize     BIGINT  Bytes from which on a free block is kept from the request so; NULL where none is.
-- @column stack_id     BIGINT  Call stack of the request: call_stacks.id; NULL where none was recorded.
WITH split_limit AS (
  SELECT MAX(max_split_size) AS max_split_size
  FROM _split_limit
)
SELECT
  t.device_id AS device_id,
  t.trace_index AS trace_index,
  CAST(ROW_NUMBER() OVER (
    PARTITION BY t.device_id
    ORDER BY t.trace_index DESC
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS BIGINT) AS newest,
  t.time_us AS time_us,
  CASE WHEN t.size > 0 THEN t.size END AS size,
  CASE WHEN t.device_free BETWEEN 0 AND 281474976710655 THEN t.device_free END AS device_free,
  t.stream AS stream,
  t.pool_id_0 AS pool_id_0,
  t.pool_id_1 AS pool_id_1,
  CASE
    WHEN t.size > 0 AND t.size < l.max_split_size THEN l.max_split_size
    -- No block is as large as a request beyond that, and the sum has to fit.
    WHEN t.size >= l.max_split_size AND t.size < 281474976710656 THEN t.size + 20971520
  END AS oversize,
  t.stack_id AS stack_id
FROM traces AS t
CROSS JOIN split_limit AS l
WHERE t.is_workspace = 0
  AND t.action = 'oom'
