-- How often each call stack allocates, and how long its blocks live, most bytes first.
--
-- Only allocations that began within the recorded window are here: the lifetime of others is not known. A lifetime runs
-- from the alloc to the request of the free, in events and, where there is a clock, in microseconds to its completion.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
-- @param limit   BIGINT = 20    Only the first rows; NULL for all.
--
-- @column device_id        BIGINT  devices.id.
-- @column device_index     BIGINT  Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column stack_id         BIGINT  call_stacks.id; NULL for all allocations without a stack.
-- @column alloc_count      BIGINT  Allocations.
-- @column total_size       BIGINT  Bytes asked for by all of them together.
-- @column largest_size     BIGINT  Bytes asked for by the largest.
-- @column live_count       BIGINT  Allocations that are alive at the end.
-- @column shortest_events  BIGINT  Shortest lifetime in events; NULL where none was freed.
-- @column mean_events      DOUBLE  Mean lifetime in events; NULL where none was freed.
-- @column longest_events   BIGINT  Longest lifetime in events; NULL where none was freed.
-- @column mean_us          DOUBLE  Mean lifetime in microseconds; NULL without a clock.
WITH lives AS (
  SELECT
    device_id,
    stack_id,
    size,
    CASE WHEN free_requested_index IS NULL AND free_completed_index IS NULL THEN 1 ELSE 0 END
      AS is_live,
    COALESCE(free_requested_index, free_completed_index) - alloc_index AS events,
    free_time_us - alloc_time_us AS microseconds
  FROM allocations
  WHERE alloc_index IS NOT NULL
),
sums AS (
  SELECT
    device_id,
    stack_id,
    COUNT(*) AS alloc_count,
    SUM(size) AS total_size,
    MAX(size) AS largest_size,
    SUM(is_live) AS live_count,
    MIN(events) AS shortest_events,
    CAST(SUM(events) AS DOUBLE) / NULLIF(COUNT(events), 0) AS mean_events,
    MAX(events) AS longest_events,
    CAST(SUM(microseconds) AS DOUBLE) / NULLIF(COUNT(microseconds), 0) AS mean_us
  FROM lives
  GROUP BY device_id, stack_id
)
SELECT
  s.device_id AS device_id,
  d.device_index AS device_index,
  s.stack_id AS stack_id,
  s.alloc_count AS alloc_count,
  s.total_size AS total_size,
  s.largest_size AS largest_size,
  s.live_count AS live_count,
  s.shortest_events AS shortest_events,
  s.mean_events AS mean_events,
  s.longest_events AS longest_events,
  s.mean_us AS mean_us
FROM sums AS s
JOIN devices AS d
  ON d.id = s.device_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY s.total_size DESC, d.device_index, s.stack_id IS NULL, s.stack_id
LIMIT $limit
