-- What every call stack of a device holds at the end and held at the peak: a side of stack_compare.
--
-- At the end these are blocks in state active_allocated, at the peak what lived when allocated was highest. Bytes at the
-- peak mean something on the devices of _known_peaks only.
--
-- @column device_index  BIGINT  Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column stack_id      BIGINT  call_stacks.id; NULL for blocks without a stack.
-- @column live_bytes    BIGINT  Bytes at the end, rounding included.
-- @column live_count    BIGINT  Blocks at the end.
-- @column peak_bytes    BIGINT  Bytes at the peak, rounding included.
WITH parts AS (
  SELECT
    d.device_index AS device_index,
    b.stack_id AS stack_id,
    b.size AS live_bytes,
    1 AS live_count,
    0 AS peak_bytes
  FROM _pool_blocks AS b
  JOIN devices AS d
    ON d.id = b.device_id
  WHERE b.state = 'active_allocated'
  UNION ALL
  SELECT
    device_index,
    stack_id,
    0 AS live_bytes,
    0 AS live_count,
    allocated_size AS peak_bytes
  FROM peak_contributors
  WHERE part <> 'unexplained'
)
SELECT
  device_index,
  stack_id,
  SUM(live_bytes) AS live_bytes,
  SUM(live_count) AS live_count,
  SUM(peak_bytes) AS peak_bytes
FROM parts
GROUP BY device_index, stack_id
