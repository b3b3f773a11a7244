-- What lived at the peak of allocated, by call stack, largest first.
--
-- allocated_size adds up exactly to the peak of `allocated` in memory_peaks. The event is that peak's, of each device
-- its own; requested_size adds up to allocated_requested at that event, which need not be its own peak.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
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
-- @column trace_index     BIGINT   Event after which the peak was reached; -1 where the window began with it.
WITH peaks AS (
  SELECT
    k.device_id AS device_id,
    COALESCE(MAX(CASE WHEN e.allocated_record = 1 THEN e.trace_index END), -1) AS trace_index
  FROM _known_peaks AS k
  LEFT JOIN _notable_events AS e
    ON e.device_id = k.device_id
  GROUP BY k.device_id
),
-- What the curves say, at the peak or before the first event.
counters AS (
  SELECT
    p.device_id AS device_id,
    p.trace_index AS trace_index,
    COALESCE(e.allocated, b.allocated) AS allocated,
    COALESCE(e.active, b.active) AS active,
    COALESCE(e.allocated_requested, b.allocated_requested) AS allocated_requested
  FROM peaks AS p
  JOIN _memory_base AS b
    ON b.device_id = p.device_id
  LEFT JOIN _notable_events AS e
    ON e.device_id = p.device_id
    AND e.trace_index = p.trace_index
),
live AS (
  SELECT
    a.device_id AS device_id,
    p.trace_index AS trace_index,
    a.stack_id AS stack_id,
    CASE WHEN a.allocated_until IS NULL OR a.allocated_until > p.trace_index
      THEN a.block_size ELSE 0 END AS allocated_size,
    CASE WHEN a.allocated_until IS NULL OR a.allocated_until > p.trace_index
      THEN a.requested_size ELSE 0 END AS requested_size,
    CASE WHEN a.allocated_until IS NULL OR a.allocated_until > p.trace_index
      THEN 1 ELSE 0 END AS block_count,
    CASE WHEN a.allocated_until IS NULL OR a.allocated_until > p.trace_index
      THEN 0 ELSE a.block_size END AS pending_size
  FROM peaks AS p
  JOIN _sized_allocations AS a
    ON a.device_id = p.device_id
  WHERE (a.alloc_index IS NULL OR a.alloc_index <= p.trace_index)
    AND (a.free_completed_index IS NULL OR a.free_completed_index > p.trace_index)
),
by_stack AS (
  SELECT
    device_id,
    trace_index,
    CASE WHEN stack_id IS NULL THEN 'no_stack' ELSE 'stack' END AS part,
    stack_id,
    SUM(allocated_size) AS allocated_size,
    SUM(requested_size) AS requested_size,
    SUM(block_count) AS block_count,
    SUM(pending_size) AS pending_size
  FROM live
  GROUP BY device_id, trace_index, stack_id
),
ranked AS (
  SELECT
    device_id,
    trace_index,
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
    trace_index,
    CASE WHEN $limit IS NULL OR place <= $limit THEN part ELSE 'others' END AS part,
    CASE WHEN $limit IS NULL OR place <= $limit THEN stack_id END AS stack_id,
    allocated_size,
    requested_size,
    block_count,
    pending_size
  FROM ranked
),
unexplained AS (
  SELECT
    c.device_id AS device_id,
    c.trace_index AS trace_index,
    c.allocated - COALESCE(SUM(s.allocated_size), 0) AS allocated_size,
    -- A snapshot that does not say what was asked for has blocks without it, too.
    COALESCE(c.allocated_requested - COALESCE(SUM(s.requested_size), 0), 0) AS requested_size,
    c.active - c.allocated - COALESCE(SUM(s.pending_size), 0) AS pending_size
  FROM counters AS c
  LEFT JOIN by_stack AS s
    ON s.device_id = c.device_id
  GROUP BY c.device_id, c.trace_index, c.allocated, c.active, c.allocated_requested
),
summed AS (
  SELECT
    device_id,
    trace_index,
    part,
    stack_id,
    SUM(allocated_size) AS allocated_size,
    SUM(requested_size) AS requested_size,
    SUM(block_count) AS block_count,
    SUM(pending_size) AS pending_size
  FROM cut
  GROUP BY device_id, trace_index, part, stack_id
  UNION ALL
  SELECT
    device_id,
    trace_index,
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
  c.frames_json AS frames_json,
  s.trace_index AS trace_index
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
