-- Which events each device has, by number.
--
-- @column device_index  BIGINT  Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column first_index   BIGINT  trace_index of the first event.
-- @column last_index    BIGINT  trace_index of the last one.
WITH ranges AS (
  SELECT
    device_id,
    MIN(trace_index) AS first_index,
    MAX(trace_index) AS last_index
  FROM traces
  GROUP BY device_id
)
SELECT
  d.device_index AS device_index,
  r.first_index AS first_index,
  r.last_index AS last_index
FROM ranges AS r
JOIN devices AS d
  ON d.id = r.device_id
ORDER BY d.device_index
