-- What lived after an event, by call stack, largest first: the state of memory at any moment of the recorded history.
--
-- It adds up to the counters of memory_timeline at that event: allocated_size to allocated, requested_size to
-- allocated_requested, allocated_size and pending_size together to active. Sizes of blocks are exact where
-- allocations.block_size_exact says so.
--
-- @param event   BIGINT = NULL  trace_index of the event; -1 for the moment before the first one, NULL for the end. A
--   number beyond the events there are is one or the other, and `npusnap sql` says so on standard error.
-- @param device  BIGINT = NULL  Only this device_index; NULL for all: events of different devices are different
--   moments.
-- @param limit   BIGINT = 100   Only the largest stacks of each device, the others in one row; NULL for all.
--
-- @column device_id       BIGINT   devices.id.
-- @column device_index    BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column part            VARCHAR  `stack`; `no_stack` for blocks of which none was recorded; `others` for the stacks
--   behind the limit; `unexplained` for what the curve has and no block accounts for: where events are missing or in
--   the wrong order (import_stats says so).
-- @column stack_id        BIGINT   call_stacks.id; NULL for all parts but `stack`.
-- @column allocated_size  BIGINT   Bytes in allocated blocks, rounding included.
-- @column requested_size  BIGINT   Bytes asked for in them.
-- @column block_count     BIGINT   Number of them.
-- @column pending_size    BIGINT   Bytes in blocks whose free was requested but not completed, rounding included.
-- @column frames_json     VARCHAR  The stack's frames as JSON, innermost first; NULL without a stack.
WITH live AS (
  SELECT
    device_id,
    stack_id,
    CASE WHEN allocated_until IS NULL OR allocated_until > COALESCE($event, 9223372036854775806)
      THEN block_size ELSE 0 END AS allocated_size,
    CASE WHEN allocated_until IS NULL OR allocated_until > COALESCE($event, 9223372036854775806)
      THEN requested_size ELSE 0 END AS requested_size,
    CASE WHEN allocated_until IS NULL OR allocated_until > COALESCE($event, 9223372036854775806)
      THEN 1 ELSE 0 END AS block_count,
    CASE WHEN allocated_until IS NULL OR allocated_until > COALESCE($event, 9223372036854775806)
      THEN 0 ELSE block_size END AS pending_size
  FROM _sized_allocations
  WHERE (alloc_index IS NULL OR alloc_index <= COALESCE($event, 9223372036854775806))
    AND (
      free_completed_index IS NULL
      OR free_completed_index > COALESCE($event, 9223372036854775806)
    )
),
by_stack AS (
  SELECT
    device_id,
    CASE WHEN stack_id IS NULL THEN 'no_stack' ELSE 'stack' END AS part,
    stack_id,
    SUM(allocated_size) AS allocated_size,
    SUM(requested_size) AS requested_size,
    SUM(block_count) AS block_count,
    SUM(pending_size) AS pending_size
  FROM live
  GROUP BY device_id, stack_id
),
ranked AS (
  SELECT
    device_id,
    part,
    stack_id,
    allocated_size,
    requested_size,
    block_count,
    pending_size,
    ROW_NUMBER() OVER (
      PARTITION BY device_id
      ORDER BY allocated_size DESC, pending_size DESC, stack_id IS NULL, stack_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS place
  FROM by_stack
),
cut AS (
  SELECT
    device_id,
    CASE WHEN $limit IS NULL OR place <= $limit THEN part ELSE 'others' END AS part,
    CASE WHEN $limit IS NULL OR place <= $limit THEN stack_id END AS stack_id,
    allocated_size,
    requested_size,
    block_count,
    pending_size
  FROM ranked
),
-- Elsewhere the blocks are what the curves are made of.
changes AS (
  SELECT
    e.device_id AS device_id,
    SUM(e.allocated) AS allocated,
    SUM(e.active) AS active,
    SUM(e.allocated_requested) AS allocated_requested
  FROM _doubtful_devices AS q
  JOIN _exact_changes AS e
    ON e.device_id = q.device_id
  WHERE e.trace_index <= COALESCE($event, 9223372036854775806)
  GROUP BY e.device_id
),
counters AS (
  SELECT
    b.device_id AS device_id,
    b.allocated + COALESCE(c.allocated, 0) AS allocated,
    b.active + COALESCE(c.active, 0) AS active,
    b.allocated_requested + COALESCE(c.allocated_requested, 0) AS allocated_requested
  FROM _doubtful_devices AS q
  JOIN _memory_base AS b
    ON b.device_id = q.device_id
  LEFT JOIN changes AS c
    ON c.device_id = q.device_id
  WHERE b.allocated IS NOT NULL
),
unexplained AS (
  SELECT
    c.device_id AS device_id,
    c.allocated - COALESCE(SUM(s.allocated_size), 0) AS allocated_size,
    -- A snapshot that does not say what was asked for has blocks without it, too.
    COALESCE(c.allocated_requested - COALESCE(SUM(s.requested_size), 0), 0) AS requested_size,
    c.active - c.allocated - COALESCE(SUM(s.pending_size), 0) AS pending_size
  FROM counters AS c
  LEFT JOIN by_stack AS s
    ON s.device_id = c.device_id
  GROUP BY c.device_id, c.allocated, c.active, c.allocated_requested
),
summed AS (
  SELECT
    device_id,
    part,
    stack_id,
    SUM(allocated_size) AS allocated_size,
    SUM(requested_size) AS requested_size,
    SUM(block_count) AS block_count,
    SUM(pending_size) AS pending_size
  FROM cut
  GROUP BY device_id, part, stack_id
  UNION ALL
  SELECT
    device_id,
    'unexplained' AS part,
    CAST(NULL AS BIGINT) AS stack_id,
    allocated_size,
    requested_size,
    0 AS block_count,
    pending_size
  FROM unexplained
  WHERE allocated_size <> 0
    OR requested_size <> 0
    OR pending_size <> 0
)
SELECT
  s.device_id AS device_id,
  d.device_index AS device_index,
  s.part AS part,
  s.stack_id AS stack_id,
  s.allocated_size AS allocated_size,
  s.requested_size AS requested_size,
  s.block_count AS block_count,
  s.pending_size AS pending_size,
  c.frames_json AS frames_json
FROM summed AS s
JOIN devices AS d
  ON d.id = s.device_id
LEFT JOIN call_stacks AS c
  ON c.id = s.stack_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY
  d.device_index,
  CASE s.part WHEN 'others' THEN 1 WHEN 'unexplained' THEN 2 ELSE 0 END,
  s.allocated_size DESC,
  s.pending_size DESC,
  s.stack_id IS NULL,
  s.stack_id
