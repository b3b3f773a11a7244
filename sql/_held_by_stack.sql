-- What every call stack of a device holds at the end and held at the peak: a side of stack_compare.
--
-- At the end these are blocks in state active_allocated, at the peak what lived when allocated was highest. Where no peak
-- is known, as without events, nothing is known of what lived there.
--
-- @column device_index  BIGINT  Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column stack_id      BIGINT  call_stacks.id; NULL for blocks without a stack.
-- @column live_bytes    BIGINT  Bytes at the end, rounding included.
-- @column live_count    BIGINT  Blocks at the end.
-- @column peak_bytes    BIGINT  Bytes at the peak, rounding included; NULL where the device's peak is not known.
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
  p.device_index AS device_index,
  p.stack_id AS stack_id,
  SUM(p.live_bytes) AS live_bytes,
  SUM(p.live_count) AS live_count,
  SUM(CASE WHEN k.device_index IS NOT NULL THEN p.peak_bytes END) AS peak_bytes
FROM parts AS p
LEFT JOIN _known_peaks AS k
  ON k.device_index = p.device_index
GROUP BY p.device_index, p.stack_id
