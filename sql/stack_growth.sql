-- How the memory of each call stack that holds any at the end grew across steps, most growth first.
--
-- It is compared at the ends of up to 64 steps, as step_boundaries tells them, or of sixteen equal stretches of the
-- history where there are fewer than five; origin says which. Blocks that lived less than half the time between two of
-- these moments are left out: a step's own tensors are no growth. What stops growing, such as weights, optimizer state
-- or a cache that is full, grew in few of the intervals, and not in the later ones. The interval before the first
-- moment is warm-up and counts for nothing. Sizes are requested bytes.
--
-- @param device       BIGINT = NULL  Only this device_index; NULL for all.
-- @param early_share  DOUBLE = 0.2   What was allocated within this share of the history, or before, is called early:
--   threshold `leak.early` of `npusnap analyze`.
--
-- @column device_id         BIGINT   devices.id.
-- @column device_index      BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column stack_id          BIGINT   call_stacks.id; NULL for all blocks of which no stack was recorded.
-- @column origin            VARCHAR  `annotation` or `inferred` where steps are compared, `time` for stretches; NULL
--   where the history is too short for either.
-- @column event_count       BIGINT   Events of the device's history.
-- @column step_count        BIGINT   Steps of the device that are seen to their end.
-- @column step_span         BIGINT   Steps between the first moment and the last; 0 where stretches are compared.
-- @column interval_count    BIGINT   Intervals compared.
-- @column grew_count        BIGINT   Of them, those in which the stack held more at the end than at the beginning.
-- @column shrank_count      BIGINT   Of them, those in which it held less.
-- @column growth_size       BIGINT   Bytes it held more at the last moment than at the first.
-- @column late_growth_size  BIGINT   Of them, growth in the second half of the intervals.
-- @column growth_count      BIGINT   Blocks it held more.
-- @column live_size         BIGINT   Bytes it holds at the end.
-- @column live_count        BIGINT   Blocks it holds at the end.
-- @column early_size        BIGINT   Bytes of them that were allocated early.
-- @column early_count       BIGINT   Blocks of them that were allocated early.
-- @column first_index       BIGINT   alloc_index of the oldest of them; NULL where all are from before the window.
-- @column last_index        BIGINT   alloc_index of the newest of them; NULL likewise.
WITH scales AS (
  SELECT
    k.device_id AS device_id,
    k.first_index AS first_index,
    k.last_index AS last_index,
    MAX(s.origin) AS origin,
    COALESCE(MAX(s.step_count), 0) AS step_count,
    COALESCE(MAX(s.step) - MIN(s.step), 0) AS step_span,
    CASE WHEN COUNT(s.sample) > 0 THEN COUNT(s.sample) - 1 ELSE 0 END AS interval_count,
    (MAX(s.last_index) - MIN(s.last_index)) / NULLIF(2 * (COUNT(s.sample) - 1), 0) AS shortest_life
  FROM _event_scale AS k
  LEFT JOIN _growth_samples AS s
    ON s.device_id = k.device_id
  GROUP BY k.device_id, k.first_index, k.last_index
),
kinds AS (
  SELECT 1 AS sign
  UNION ALL
  SELECT -1 AS sign
),
-- A block's beginning and its end, if it has one.
ends AS (
  SELECT
    a.device_id AS device_id,
    a.stack_id AS stack_id,
    k.origin AS origin,
    COALESCE(k.last_index - k.first_index + 1, 0) AS event_count,
    k.step_count AS step_count,
    k.step_span AS step_span,
    k.interval_count AS interval_count,
    s.sign AS sign,
    a.requested_size AS size,
    CASE WHEN s.sign = 1 THEN a.alloc_index ELSE a.allocated_until END AS trace_index,
    CASE WHEN s.sign = 1 AND a.allocated_until IS NULL THEN 1 ELSE 0 END AS is_live,
    CASE
      WHEN a.alloc_index IS NULL THEN 1
      WHEN a.alloc_index - k.first_index < (k.last_index - k.first_index) * $early_share THEN 1
      ELSE 0
    END AS is_early,
    -- Whether the youngest, which live at the end, will last is not known.
    CASE
      WHEN a.allocated_until IS NULL AND k.last_index - a.alloc_index < k.shortest_life THEN 0
      ELSE 1
    END AS is_lasting
  FROM scales AS k
  JOIN _sized_allocations AS a
    ON a.device_id = k.device_id
  CROSS JOIN kinds AS s
  WHERE (s.sign = 1 OR a.allocated_until IS NOT NULL)
    AND (
      a.allocated_until IS NULL
      OR (
        a.allocated_until >= 0
        AND (a.alloc_index IS NULL OR a.allocated_until - a.alloc_index >= k.shortest_life)
      )
    )
),
intervals AS (
  SELECT
    e.device_id AS device_id,
    e.stack_id AS stack_id,
    e.origin AS origin,
    e.event_count AS event_count,
    e.step_count AS step_count,
    e.step_span AS step_span,
    e.interval_count AS interval_count,
    s.sample - 1 AS stretch,
    SUM(e.is_lasting * e.sign * e.size) AS change,
    SUM(e.is_lasting * e.sign) AS count_change,
    SUM(e.is_live * e.size) AS live_size,
    SUM(e.is_live) AS live_count,
    SUM(e.is_live * e.is_early * e.size) AS early_size,
    SUM(e.is_live * e.is_early) AS early_count,
    MIN(CASE WHEN e.is_live = 1 THEN e.trace_index END) AS first_index,
    MAX(CASE WHEN e.is_live = 1 THEN e.trace_index END) AS last_index
  FROM ends AS e
  LEFT JOIN _growth_samples AS s
    ON s.device_id = e.device_id
    AND e.trace_index > s.after_index
    AND e.trace_index <= s.last_index
  GROUP BY
    e.device_id,
    e.stack_id,
    e.origin,
    e.event_count,
    e.step_count,
    e.step_span,
    e.interval_count,
    s.sample
),
-- What comes before the first moment or after the last is in no interval.
growth AS (
  SELECT
    device_id,
    stack_id,
    origin,
    event_count,
    step_count,
    step_span,
    interval_count,
    SUM(CASE WHEN stretch > 0 AND change > 0 THEN 1 ELSE 0 END) AS grew_count,
    SUM(CASE WHEN stretch > 0 AND change < 0 THEN 1 ELSE 0 END) AS shrank_count,
    SUM(CASE WHEN stretch > 0 THEN change ELSE 0 END) AS growth_size,
    SUM(CASE WHEN stretch * 2 > interval_count THEN change ELSE 0 END) AS late_growth_size,
    SUM(CASE WHEN stretch > 0 THEN count_change ELSE 0 END) AS growth_count,
    SUM(live_size) AS live_size,
    SUM(live_count) AS live_count,
    SUM(early_size) AS early_size,
    SUM(early_count) AS early_count,
    MIN(first_index) AS first_index,
    MAX(last_index) AS last_index
  FROM intervals
  GROUP BY
    device_id,
    stack_id,
    origin,
    event_count,
    step_count,
    step_span,
    interval_count
)
SELECT
  g.device_id AS device_id,
  d.device_index AS device_index,
  g.stack_id AS stack_id,
  g.origin AS origin,
  g.event_count AS event_count,
  g.step_count AS step_count,
  g.step_span AS step_span,
  g.interval_count AS interval_count,
  g.grew_count AS grew_count,
  g.shrank_count AS shrank_count,
  g.growth_size AS growth_size,
  g.late_growth_size AS late_growth_size,
  g.growth_count AS growth_count,
  g.live_size AS live_size,
  g.live_count AS live_count,
  g.early_size AS early_size,
  g.early_count AS early_count,
  g.first_index AS first_index,
  g.last_index AS last_index
FROM growth AS g
JOIN devices AS d
  ON d.id = g.device_id
WHERE g.live_count > 0
  AND ($device IS NULL OR d.device_index = $device)
ORDER BY
  d.device_index,
  g.growth_size DESC,
  g.live_size DESC,
  g.stack_id IS NULL,
  g.stack_id
