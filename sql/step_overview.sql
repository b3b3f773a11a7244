-- What growth can be told by on each device: how many steps its history has, and how many intervals are compared.
--
-- step_boundaries has the steps, stack_growth compares the intervals.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id       BIGINT   devices.id.
-- @column device_index    BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column event_count     BIGINT   Events from the first one of the history to the last.
-- @column origin          VARCHAR  `annotation` or `inferred` where steps are compared, `time` for stretches of equal length;
--   NULL where the history is too short for either.
-- @column step_count      BIGINT   Steps that are seen to their end.
-- @column step_span       BIGINT   Steps between the first moment of comparison and the last; 0 for stretches.
-- @column interval_count  BIGINT   Intervals compared.
-- @column allocated_size  BIGINT   Bytes asked for, all in all, between the first moment of comparison and the last.
WITH scales AS (
  SELECT
    k.device_id AS device_id,
    COALESCE(k.last_index - k.first_index + 1, 0) AS event_count,
    MAX(s.origin) AS origin,
    COALESCE(MAX(s.step_count), 0) AS step_count,
    COALESCE(MAX(s.step) - MIN(s.step), 0) AS step_span,
    CASE WHEN COUNT(s.sample) > 0 THEN COUNT(s.sample) - 1 ELSE 0 END AS interval_count,
    MIN(s.last_index) AS after_index,
    MAX(s.last_index) AS last_index
  FROM _event_scale AS k
  LEFT JOIN _growth_samples AS s
    ON s.device_id = k.device_id
  GROUP BY k.device_id, k.first_index, k.last_index
),
asked AS (
  SELECT
    k.device_id AS device_id,
    k.event_count AS event_count,
    k.origin AS origin,
    k.step_count AS step_count,
    k.step_span AS step_span,
    k.interval_count AS interval_count,
    COALESCE(SUM(a.size), 0) AS allocated_size
  FROM scales AS k
  LEFT JOIN allocations AS a
    ON a.device_id = k.device_id
    AND a.alloc_index > k.after_index
    AND a.alloc_index <= k.last_index
  GROUP BY
    k.device_id,
    k.event_count,
    k.origin,
    k.step_count,
    k.step_span,
    k.interval_count
)
SELECT
  a.device_id AS device_id,
  d.device_index AS device_index,
  a.event_count AS event_count,
  a.origin AS origin,
  a.step_count AS step_count,
  a.step_span AS step_span,
  a.interval_count AS interval_count,
  a.allocated_size AS allocated_size
FROM asked AS a
JOIN devices AS d
  ON d.id = a.device_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index
