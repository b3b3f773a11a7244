-- What the call stacks hold at the end of each slice of the history, oldest slice first, largest stack first.
--
-- The history of each device is cut into slices of equally many events. Sizes are those of allocated blocks, rounding
-- included; together with the `unexplained` part of live_at they add up to `allocated` in memory_timeline.
--
-- @param slices  BIGINT = 20    Slices; more than 100 are 100.
-- @param top     BIGINT = 10    Only the largest stacks of each slice, the others in one row; NULL for all.
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id       BIGINT   devices.id.
-- @column device_index    BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column slice           BIGINT   Number of the slice, from 1.
-- @column last_index      BIGINT   trace_index of its last event.
-- @column part            VARCHAR  `stack`; `no_stack` for blocks of which none was recorded; `others` for the stacks
--   behind the largest.
-- @column stack_id        BIGINT   call_stacks.id; NULL for all parts but `stack`.
-- @column allocated_size  BIGINT   Bytes.
-- @column block_count     BIGINT   Blocks.
WITH digits AS (
  SELECT 0 AS digit
  UNION ALL
  SELECT 1 AS digit
  UNION ALL
  SELECT 2 AS digit
  UNION ALL
  SELECT 3 AS digit
  UNION ALL
  SELECT 4 AS digit
  UNION ALL
  SELECT 5 AS digit
  UNION ALL
  SELECT 6 AS digit
  UNION ALL
  SELECT 7 AS digit
  UNION ALL
  SELECT 8 AS digit
  UNION ALL
  SELECT 9 AS digit
),
bounds AS (
  SELECT
    k.device_id AS device_id,
    t.digit * 10 + o.digit + 1 AS slice,
    k.first_index
      + (k.last_index - k.first_index) * (t.digit * 10 + o.digit + 1)
        / NULLIF(CASE WHEN $slices > 100 THEN 100 ELSE $slices END, 0)
      AS last_index
  FROM digits AS t
  CROSS JOIN digits AS o
  CROSS JOIN _event_scale AS k
  WHERE t.digit * 10 + o.digit < $slices
    AND k.last_index IS NOT NULL
),
live AS (
  SELECT
    b.device_id AS device_id,
    b.slice AS slice,
    b.last_index AS last_index,
    a.stack_id AS stack_id,
    SUM(a.block_size) AS allocated_size,
    COUNT(*) AS block_count
  FROM bounds AS b
  JOIN _sized_allocations AS a
    ON a.device_id = b.device_id
    AND (a.alloc_index IS NULL OR a.alloc_index <= b.last_index)
    AND (a.allocated_until IS NULL OR a.allocated_until > b.last_index)
  GROUP BY b.device_id, b.slice, b.last_index, a.stack_id
),
ranked AS (
  SELECT
    device_id,
    slice,
    last_index,
    stack_id,
    allocated_size,
    block_count,
    ROW_NUMBER() OVER (
      PARTITION BY device_id, slice
      ORDER BY allocated_size DESC, stack_id IS NULL, stack_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS place
  FROM live
),
cut AS (
  SELECT
    device_id,
    slice,
    last_index,
    CASE
      WHEN $top IS NOT NULL AND place > $top THEN 'others'
      WHEN stack_id IS NULL THEN 'no_stack'
      ELSE 'stack'
    END AS part,
    CASE WHEN $top IS NULL OR place <= $top THEN stack_id END AS stack_id,
    allocated_size,
    block_count
  FROM ranked
),
summed AS (
  SELECT
    device_id,
    slice,
    last_index,
    part,
    stack_id,
    SUM(allocated_size) AS allocated_size,
    SUM(block_count) AS block_count
  FROM cut
  GROUP BY device_id, slice, last_index, part, stack_id
)
SELECT
  s.device_id AS device_id,
  d.device_index AS device_index,
  s.slice AS slice,
  s.last_index AS last_index,
  s.part AS part,
  s.stack_id AS stack_id,
  s.allocated_size AS allocated_size,
  s.block_count AS block_count
FROM summed AS s
JOIN devices AS d
  ON d.id = s.device_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY
  d.device_index,
  s.slice,
  CASE s.part WHEN 'others' THEN 1 ELSE 0 END,
  s.allocated_size DESC,
  s.stack_id IS NULL,
  s.stack_id
