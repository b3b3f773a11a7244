-- Which call stacks made reserved memory grow: of each device, most bytes first.
--
-- A stack is that of the event that brought bytes: of the request for which the pool had no room, so which of many
-- requests it was may be chance. Whether memory only ever grew is in segment_growth.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id        BIGINT   devices.id.
-- @column device_index     BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column stack_id         BIGINT   call_stacks.id; NULL for all events of which no stack was recorded.
-- @column grow_count       BIGINT   segment_alloc and segment_map events.
-- @column grown_size       BIGINT   Bytes that came with them; over all stacks, grown_size of segment_growth.
-- @column late_grown_size  BIGINT   Of them, in the second half of the history.
WITH growth AS (
  SELECT
    e.device_id AS device_id,
    e.is_late AS is_late,
    t.stack_id AS stack_id,
    e.size AS size
  FROM _segment_events AS e
  JOIN traces AS t
    ON t.device_id = e.device_id
    AND t.trace_index = e.trace_index
  WHERE e.is_growth = 1
    AND e.size > 0
    AND t.action IN ('segment_alloc', 'segment_map')
),
sums AS (
  SELECT
    device_id,
    stack_id,
    COUNT(*) AS grow_count,
    SUM(size) AS grown_size,
    SUM(CASE WHEN is_late = 1 THEN size ELSE 0 END) AS late_grown_size
  FROM growth
  GROUP BY device_id, stack_id
)
SELECT
  s.device_id AS device_id,
  d.device_index AS device_index,
  s.stack_id AS stack_id,
  s.grow_count AS grow_count,
  s.grown_size AS grown_size,
  s.late_grown_size AS late_grown_size
FROM sums AS s
JOIN devices AS d
  ON d.id = s.device_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index, s.grown_size DESC, s.stack_id IS NULL, s.stack_id
