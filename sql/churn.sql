-- Pairs of places that allocate large blocks and free them again soon: of each device, most bytes first.
--
-- Such a pair asks for the same memory over and over; a buffer that is kept would save it. A pair is the call
-- stack of the alloc and that of the free; where frees carry no stack of their own, all frees of an alloc are one pair.
--
-- @param device    BIGINT = NULL     Only this device_index; NULL for all.
-- @param min_size  BIGINT = 1048576  Only blocks for which at least so many bytes were asked.
-- @param max_life  BIGINT = 1000     Only blocks whose free was requested within so many events.
-- @param limit     BIGINT = 20       Only the first pairs of each device; NULL for all.
--
-- @column device_id      BIGINT  devices.id.
-- @column device_index   BIGINT  Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column stack_id       BIGINT  Call stack of the alloc: call_stacks.id; NULL without one.
-- @column free_stack_id  BIGINT  Call stack of the free: call_stacks.id; NULL without one.
-- @column pair_count     BIGINT  Blocks that came and went.
-- @column total_size     BIGINT  Bytes asked for by all of them together.
-- @column largest_size   BIGINT  Bytes asked for by the largest.
-- @column mean_events    DOUBLE  Mean lifetime in events.
WITH pairs AS (
  SELECT
    device_id,
    stack_id,
    free_stack_id,
    size,
    free_requested_index - alloc_index AS events
  FROM allocations
  WHERE size >= $min_size
    AND free_requested_index - alloc_index <= $max_life
),
sums AS (
  SELECT
    device_id,
    stack_id,
    free_stack_id,
    COUNT(*) AS pair_count,
    SUM(size) AS total_size,
    MAX(size) AS largest_size,
    CAST(SUM(events) AS DOUBLE) / NULLIF(COUNT(*), 0) AS mean_events
  FROM pairs
  GROUP BY device_id, stack_id, free_stack_id
),
ranked AS (
  SELECT
    device_id,
    stack_id,
    free_stack_id,
    pair_count,
    total_size,
    largest_size,
    mean_events,
    ROW_NUMBER() OVER (
      PARTITION BY device_id
      ORDER BY
        total_size DESC, stack_id IS NULL, stack_id, free_stack_id IS NULL, free_stack_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS place
  FROM sums
)
SELECT
  s.device_id AS device_id,
  d.device_index AS device_index,
  s.stack_id AS stack_id,
  s.free_stack_id AS free_stack_id,
  s.pair_count AS pair_count,
  s.total_size AS total_size,
  s.largest_size AS largest_size,
  s.mean_events AS mean_events
FROM ranked AS s
JOIN devices AS d
  ON d.id = s.device_id
WHERE ($device IS NULL OR d.device_index = $device)
  AND ($limit IS NULL OR s.place <= $limit)
ORDER BY d.device_index, s.place
