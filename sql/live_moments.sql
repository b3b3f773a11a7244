-- What the call stacks with the most memory held as time went by: one row where the bytes of a stack changed.
--
-- The history of a device is looked at after events that are evenly spread over it. Between the rows of a stack its
-- bytes stay what they were. A stack that held nothing at any of these moments has no row.
--
-- @param device   BIGINT = NULL  Only this device_index; NULL for all.
-- @param moments  BIGINT = 48    Moments of each device, without the one before its first event.
-- @param limit    BIGINT = 24    Only so many stacks of each device, those with the highest levels; NULL for all.
--
-- @column device_id       BIGINT  devices.id.
-- @column device_index    BIGINT  Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column moment          BIGINT  Number of the moment, 0 for the first event.
-- @column trace_index     BIGINT  Event after which it is.
-- @column stack_id        BIGINT  call_stacks.id; NULL for all blocks of which no stack was recorded.
-- @column allocated_size  BIGINT  Bytes in allocated blocks then, rounding included.
WITH spans AS (
  SELECT
    device_id,
    MIN(trace_index) AS first_index,
    CASE
      WHEN MAX(trace_index) > MIN(trace_index) THEN MAX(trace_index) - MIN(trace_index)
      ELSE 1
    END AS length
  FROM traces
  WHERE is_workspace = 0
  GROUP BY device_id
),
-- The first moment that is not before an event: the share of the way to it, rounded up.
lives AS (
  SELECT
    a.device_id AS device_id,
    a.stack_id AS stack_id,
    a.block_size AS block_size,
    CASE
      WHEN a.alloc_index IS NULL OR a.alloc_index <= s.first_index THEN 0
      ELSE ((a.alloc_index - s.first_index) * $moments + s.length - 1) / NULLIF(s.length, 0)
    END AS first_moment,
    CASE
      WHEN a.allocated_until IS NULL THEN $moments + 1
      WHEN a.allocated_until <= s.first_index THEN 0
      ELSE ((a.allocated_until - s.first_index) * $moments + s.length - 1) / NULLIF(s.length, 0)
    END AS end_moment
  FROM _sized_allocations AS a
  JOIN spans AS s
    ON s.device_id = a.device_id
),
changes AS (
  SELECT
    device_id,
    stack_id,
    first_moment AS moment,
    block_size AS change
  FROM lives
  WHERE first_moment < end_moment
  UNION ALL
  SELECT
    device_id,
    stack_id,
    end_moment AS moment,
    -block_size AS change
  FROM lives
  WHERE first_moment < end_moment
    AND end_moment <= $moments
),
totals AS (
  SELECT
    device_id,
    stack_id,
    moment,
    SUM(change) AS change
  FROM changes
  GROUP BY device_id, stack_id, moment
),
levels AS (
  SELECT
    device_id,
    stack_id,
    moment,
    SUM(change) OVER (
      PARTITION BY device_id, stack_id
      ORDER BY moment
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS allocated_size
  FROM totals
),
highest AS (
  SELECT
    device_id,
    stack_id,
    MAX(allocated_size) AS most
  FROM levels
  GROUP BY device_id, stack_id
),
ranked AS (
  SELECT
    device_id,
    stack_id,
    ROW_NUMBER() OVER (
      PARTITION BY device_id
      ORDER BY most DESC, stack_id IS NULL, stack_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS stack_rank
  FROM highest
)
SELECT
  l.device_id AS device_id,
  d.device_index AS device_index,
  l.moment AS moment,
  s.first_index + s.length * l.moment / NULLIF($moments, 0) AS trace_index,
  l.stack_id AS stack_id,
  l.allocated_size AS allocated_size
FROM ranked AS r
JOIN levels AS l
  ON l.device_id = r.device_id
  AND COALESCE(l.stack_id, 0) = COALESCE(r.stack_id, 0)
JOIN spans AS s
  ON s.device_id = l.device_id
JOIN devices AS d
  ON d.id = l.device_id
WHERE ($limit IS NULL OR r.stack_rank <= $limit)
  AND ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index, l.moment, l.stack_id IS NULL, l.stack_id
