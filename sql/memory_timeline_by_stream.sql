-- The five counters of one stream after every event of it, oldest first.
--
-- As memory_timeline, for the memory that belongs to the event's stream: the allocator gives a free block only to requests
-- of the stream it belongs to. A curve starts from its base, which is what the final state has for the stream without all
-- that its events changed. At any moment the last rows of all streams add up to memory_timeline, as far as every stream
-- has a row yet. Marks, which change nothing, and entries of the NPU's workspace allocator are left out.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
-- @param first   BIGINT = NULL  Only events from this trace_index on; NULL for all.
-- @param last    BIGINT = NULL  Only events up to this trace_index; NULL for all.
--
-- @column device_id            BIGINT   devices.id.
-- @column device_index         BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column stream               BIGINT   Stream of the event, as the allocator's pointer-sized number.
-- @column trace_index          BIGINT   Position of the event in the device's history.
-- @column time_us              BIGINT   Microseconds since the Unix epoch; NULL without a clock.
-- @column action               VARCHAR  What happened.
-- @column size                 BIGINT   Bytes of the event.
-- @column reserved             BIGINT   Bytes the allocator holds from the driver for it.
-- @column allocated            BIGINT   Bytes in its allocated blocks, rounding included.
-- @column active               BIGINT   Bytes in its blocks that are allocated or wait for a pending free, rounding
--   included.
-- @column allocated_requested  BIGINT   Bytes asked for in its allocated blocks.
-- @column active_requested     BIGINT   Bytes asked for in its blocks that are allocated or wait for a pending free.
WITH net_changes AS (
  SELECT
    device_id,
    stream,
    SUM(reserved_change) AS reserved,
    SUM(allocated_change) AS allocated,
    SUM(active_change) AS active,
    SUM(allocated_requested_change) AS allocated_requested,
    SUM(active_requested_change) AS active_requested
  FROM _slice_changes
  GROUP BY device_id, stream
),
finals AS (
  SELECT
    device_id,
    stream,
    SUM(reserved) AS reserved,
    SUM(allocated) AS allocated,
    SUM(active) AS active,
    SUM(allocated_requested) AS allocated_requested,
    SUM(active_requested) AS active_requested
  FROM _segment_counters
  GROUP BY device_id, stream
),
-- What there was before the first event: the final state without all changes. Where the base of
-- the device is not known, neither is that of a part of it.
bases AS (
  SELECT
    n.device_id AS device_id,
    n.stream AS stream,
    CASE
      WHEN b.reserved IS NOT NULL
        THEN COALESCE(f.reserved, 0) - n.reserved
    END AS reserved,
    CASE
      WHEN b.allocated IS NOT NULL
        THEN COALESCE(f.allocated, 0) - n.allocated
    END AS allocated,
    CASE
      WHEN b.active IS NOT NULL
        THEN COALESCE(f.active, 0) - n.active
    END AS active,
    CASE
      WHEN b.allocated_requested IS NOT NULL
        THEN COALESCE(f.allocated_requested, 0) - n.allocated_requested
    END AS allocated_requested,
    CASE
      WHEN b.active_requested IS NOT NULL
        THEN COALESCE(f.active_requested, 0) - n.active_requested
    END AS active_requested
  FROM net_changes AS n
  LEFT JOIN finals AS f
    ON f.device_id = n.device_id
    AND f.stream = n.stream
  LEFT JOIN _memory_base AS b
    ON b.device_id = n.device_id
),
running AS (
  SELECT
    device_id,
    stream,
    trace_index,
    time_us,
    action,
    size,
    SUM(reserved) OVER (
      PARTITION BY device_id, stream
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS reserved,
    SUM(allocated) OVER (
      PARTITION BY device_id, stream
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS allocated,
    SUM(active) OVER (
      PARTITION BY device_id, stream
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS active,
    SUM(allocated_requested) OVER (
      PARTITION BY device_id, stream
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS allocated_requested,
    SUM(active_requested) OVER (
      PARTITION BY device_id, stream
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS active_requested
  FROM _exact_changes
  -- The last says no more; but with it the planner asks behind the join, whose sides it then knows.
  WHERE is_mark = 0
    OR active <> 0
)
SELECT
  r.device_id AS device_id,
  d.device_index AS device_index,
  r.stream AS stream,
  r.trace_index AS trace_index,
  r.time_us AS time_us,
  r.action AS action,
  r.size AS size,
  b.reserved + r.reserved AS reserved,
  b.allocated + r.allocated AS allocated,
  b.active + r.active AS active,
  b.allocated_requested + r.allocated_requested AS allocated_requested,
  b.active_requested + r.active_requested AS active_requested
-- The bases first: the planner does not know how few they are, and holds what is named first.
FROM bases AS b
JOIN running AS r
  ON r.device_id = b.device_id
  AND r.stream = b.stream
JOIN devices AS d
  ON d.id = r.device_id
WHERE ($device IS NULL OR d.device_index = $device)
  AND ($first IS NULL OR r.trace_index >= $first)
  AND ($last IS NULL OR r.trace_index <= $last)
ORDER BY r.device_id, r.trace_index
