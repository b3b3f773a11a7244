-- How reserved memory grew and shrank over the history, one row per device.
--
-- Memory that only ever grows may be a leak, or a program that has not yet seen its largest step: a caching allocator
-- gives nothing back unless it is asked to or runs out.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id         BIGINT  devices.id.
-- @column device_index      BIGINT  Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column grow_count        BIGINT  segment_alloc and segment_map events.
-- @column shrink_count      BIGINT  segment_free and segment_unmap events.
-- @column grown_size        BIGINT  Bytes that came.
-- @column shrunk_size       BIGINT  Bytes that went.
-- @column late_grown_size   BIGINT  Bytes that came in the second half of the history.
-- @column first_grow_index  BIGINT  trace_index of the first event that brought bytes; NULL without one.
-- @column last_grow_index   BIGINT  trace_index of the last event that brought bytes; NULL without one.
-- @column is_monotone       BIGINT  1 where bytes came and none went, else 0.
WITH changes AS (
  SELECT
    device_id,
    trace_index,
    is_late,
    CASE is_growth WHEN 1 THEN size ELSE -size END AS change
  FROM _segment_events
  WHERE size > 0
),
sums AS (
  SELECT
    device_id,
    SUM(CASE WHEN change > 0 THEN 1 ELSE 0 END) AS grow_count,
    SUM(CASE WHEN change < 0 THEN 1 ELSE 0 END) AS shrink_count,
    SUM(CASE WHEN change > 0 THEN change ELSE 0 END) AS grown_size,
    SUM(CASE WHEN change < 0 THEN -change ELSE 0 END) AS shrunk_size,
    SUM(CASE WHEN change > 0 AND is_late = 1 THEN change ELSE 0 END) AS late_grown_size,
    MIN(CASE WHEN change > 0 THEN trace_index END) AS first_grow_index,
    MAX(CASE WHEN change > 0 THEN trace_index END) AS last_grow_index
  FROM changes
  GROUP BY device_id
)
SELECT
  d.id AS device_id,
  d.device_index AS device_index,
  COALESCE(s.grow_count, 0) AS grow_count,
  COALESCE(s.shrink_count, 0) AS shrink_count,
  COALESCE(s.grown_size, 0) AS grown_size,
  COALESCE(s.shrunk_size, 0) AS shrunk_size,
  COALESCE(s.late_grown_size, 0) AS late_grown_size,
  s.first_grow_index AS first_grow_index,
  s.last_grow_index AS last_grow_index,
  CASE WHEN s.grow_count > 0 AND s.shrink_count = 0 THEN 1 ELSE 0 END AS is_monotone
FROM devices AS d
LEFT JOIN sums AS s
  ON s.device_id = d.id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index
