-- The slices of the history in which something changed, with the growth of memory in or before each.
--
-- Where memory grew, and in the slice behind, the request that it grew for must be found, so that single events count.
-- What lies between is known from the sums of its slices.
--
-- @kept
-- @column device_id        BIGINT  devices.id.
-- @column slice_index      BIGINT  Number of the slice: see _scale.
-- @column first_index      BIGINT  trace_index of the first event.
-- @column last_index       BIGINT  trace_index of the last event.
-- @column is_close         BIGINT  1 where memory grew in it or in the one before; else 0.
-- @column last_growth      BIGINT  Last event that added memory, in it or before; NULL without one.
-- @column has_other_pages  BIGINT  1 where memory of large kind is not mapped in pages of 20 MiB on the device; else 0.
-- @column tells_pool       BIGINT  1 where events of the device say their memory pool; else 0.
WITH other_pages AS (
  SELECT device_id
  FROM _segment_events
  WHERE action = 'segment_map'
    AND size > 2097152
    AND size % 20971520 <> 0
  UNION
  SELECT device_id
  FROM _pool_segments
  WHERE is_expandable = 1
    AND segment_type = 'large'
    AND total_size % 20971520 <> 0
),
growths AS (
  SELECT
    device_id,
    slice_index,
    MAX(trace_index) AS last_growth
  FROM _segment_events
  WHERE is_growth = 1
    AND size > 0
  GROUP BY device_id, slice_index
),
-- Slices without any change hold no request.
slices AS (
  SELECT
    device_id,
    slice_index,
    MIN(first_index) AS first_index,
    MAX(last_index) AS last_index,
    MAX(CASE WHEN event_count > 0 AND pool_id_0 IS NOT NULL THEN 1 ELSE 0 END) AS tells_pool
  FROM _slice_changes
  WHERE reserved_rise <> 0
    OR reserved_change <> 0
    OR allocated_rise <> 0
    OR allocated_change <> 0
    OR active_change <> 0
  GROUP BY device_id, slice_index
),
pools AS (
  SELECT
    device_id,
    MAX(tells_pool) AS tells_pool
  FROM slices
  GROUP BY device_id
)
SELECT
  s.device_id AS device_id,
  s.slice_index AS slice_index,
  s.first_index AS first_index,
  s.last_index AS last_index,
  CASE
    WHEN COUNT(g.last_growth) OVER (
      PARTITION BY s.device_id
      ORDER BY s.slice_index
      ROWS BETWEEN 1 PRECEDING AND CURRENT ROW
    ) > 0 THEN 1
    ELSE 0
  END AS is_close,
  MAX(g.last_growth) OVER (
    PARTITION BY s.device_id
    ORDER BY s.slice_index
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS last_growth,
  CASE WHEN o.device_id IS NULL THEN 0 ELSE 1 END AS has_other_pages,
  p.tells_pool AS tells_pool
FROM slices AS s
JOIN pools AS p
  ON p.device_id = s.device_id
LEFT JOIN other_pages AS o
  ON o.device_id = s.device_id
LEFT JOIN growths AS g
  ON g.device_id = s.device_id
  AND g.slice_index = s.slice_index
