-- How many blocks lived for a short while only, after each slice of the history: the rhythm of the program.
--
-- What lives longer than a quarter of the history, or to its end, is left out: weights, optimizer state, caches and leaks
-- would bury the steps. Blocks are counted, not bytes: a few large tensors come and go within a step, but their number
-- rises and falls with it. Slices in which nothing changes have no row.
--
-- @kept
-- @column device_id    BIGINT  devices.id.
-- @column slice_index  BIGINT  Number of the slice, from 0: see _scale.
-- @column level        BIGINT  Blocks after the slice.
WITH short_lived AS (
  SELECT
    a.device_id AS device_id,
    a.alloc_index / NULLIF(k.slice_width, 0) AS alloc_slice,
    a.allocated_until / NULLIF(k.slice_width, 0) AS free_slice
  FROM _event_scale AS k
  JOIN _sized_allocations AS a
    ON a.device_id = k.device_id
  WHERE a.alloc_index IS NOT NULL
    AND a.allocated_until IS NOT NULL
    AND (a.allocated_until - a.alloc_index) * 4 < k.last_index - k.first_index
),
signs AS (
  SELECT 1 AS sign
  UNION ALL
  SELECT -1 AS sign
),
changes AS (
  SELECT
    b.device_id AS device_id,
    CASE s.sign WHEN 1 THEN b.alloc_slice ELSE b.free_slice END AS slice_index,
    s.sign AS change
  FROM signs AS s
  CROSS JOIN short_lived AS b
),
slices AS (
  SELECT
    device_id,
    slice_index,
    SUM(change) AS change
  FROM changes
  GROUP BY device_id, slice_index
)
SELECT
  device_id,
  slice_index,
  SUM(change) OVER (
    PARTITION BY device_id
    ORDER BY slice_index
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS level
FROM slices
