-- Events at which a counter rose above all it had been before, and marks, with the counters after each.
--
-- Only slices that can hold the peak, or that hold a mark, are looked into. The last record of a counter is its peak.
--
-- @kept
-- @column device_id                   BIGINT  devices.id.
-- @column trace_index                 BIGINT  Position of the event in the device's history.
-- @column time_us                     BIGINT  Microseconds since the Unix epoch; NULL without a clock.
-- @column action                      VARCHAR What happened.
-- @column size                        BIGINT  Bytes of the event.
-- @column is_mark                     BIGINT  1 for an event that changes nothing, such as `oom` or `snapshot`; else
--   0.
-- @column reserved                    BIGINT  Bytes the allocator holds from the driver.
-- @column allocated                   BIGINT  Bytes in allocated blocks, rounding included.
-- @column active                      BIGINT  Bytes in allocated and pending-free blocks, rounding included.
-- @column allocated_requested         BIGINT  Bytes asked for in allocated blocks.
-- @column active_requested            BIGINT  Bytes asked for in allocated and pending-free blocks.
-- @column reserved_record             BIGINT  1 where it is higher than ever before in the slices looked into, base
--   included; else 0.
-- @column allocated_record            BIGINT  1 where it is higher than ever before in the slices looked into, base
--   included; else 0.
-- @column active_record               BIGINT  1 where it is higher than ever before in the slices looked into, base
--   included; else 0.
-- @column allocated_requested_record  BIGINT  1 where it is higher than ever before in the slices looked into, base
--   included; else 0.
-- @column active_requested_record     BIGINT  1 where it is higher than ever before in the slices looked into, base
--   included; else 0.
WITH tops AS (
  SELECT
    device_id,
    MAX(reserved) AS reserved,
    MAX(allocated) AS allocated,
    MAX(active) AS active,
    MAX(allocated_requested) AS allocated_requested,
    MAX(active_requested) AS active_requested
  FROM _memory_slices
  GROUP BY device_id
),
-- A peak is above all that was before it, and not below the end of any slice.
candidates AS (
  SELECT
    s.device_id AS device_id,
    s.slice_index AS slice_index,
    s.first_index AS first_index,
    s.last_index AS last_index,
    s.reserved - s.reserved_change AS reserved_before,
    s.reserved_best AS reserved_best,
    s.allocated - s.allocated_change AS allocated_before,
    s.allocated_best AS allocated_best,
    s.active - s.active_change AS active_before,
    s.active_best AS active_best,
    s.allocated_requested - s.allocated_requested_change AS allocated_requested_before,
    s.allocated_requested_best AS allocated_requested_best,
    s.active_requested - s.active_requested_change AS active_requested_before,
    s.active_requested_best AS active_requested_best
  FROM tops AS t
  JOIN _memory_slices AS s
    ON s.device_id = t.device_id
  WHERE s.mark_count > 0
    OR (s.reserved_most > s.reserved_best AND s.reserved_most >= t.reserved)
    OR (s.allocated_most > s.allocated_best AND s.allocated_most >= t.allocated)
    OR (s.active_most > s.active_best AND s.active_most >= t.active)
    OR (
      s.allocated_requested_most > s.allocated_requested_best
      AND s.allocated_requested_most >= t.allocated_requested
    )
    OR (
      s.active_requested_most > s.active_requested_best
      AND s.active_requested_most >= t.active_requested
    )
),
changes AS (
  SELECT
    e.device_id AS device_id,
    e.slice_index AS slice_index,
    e.trace_index AS trace_index,
    e.time_us AS time_us,
    e.action AS action,
    e.size AS size,
    e.is_mark AS is_mark,
    e.reserved AS reserved,
    e.allocated + COALESCE(x.allocated, 0) AS allocated,
    e.active + COALESCE(x.active, 0) AS active,
    e.allocated_requested AS allocated_requested,
    e.active_requested AS active_requested,
    c.reserved_before AS reserved_before,
    c.reserved_best AS reserved_best,
    c.allocated_before AS allocated_before,
    c.allocated_best AS allocated_best,
    c.active_before AS active_before,
    c.active_best AS active_best,
    c.allocated_requested_before AS allocated_requested_before,
    c.allocated_requested_best AS allocated_requested_best,
    c.active_requested_before AS active_requested_before,
    c.active_requested_best AS active_requested_best
  FROM candidates AS c
  JOIN _event_changes AS e
    ON e.device_id = c.device_id
    AND e.slice_index = c.slice_index
    -- Says no more; but SQLite has an index on it.
    AND e.trace_index BETWEEN c.first_index AND c.last_index
  LEFT JOIN _rounding_excess AS x
    ON x.device_id = e.device_id
    AND x.trace_index = e.trace_index
),
sums AS (
  SELECT
    device_id,
    slice_index,
    trace_index,
    time_us,
    action,
    size,
    is_mark,
    SUM(reserved) OVER (
      PARTITION BY device_id, slice_index
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS reserved,
    SUM(allocated) OVER (
      PARTITION BY device_id, slice_index
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS allocated,
    SUM(active) OVER (
      PARTITION BY device_id, slice_index
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS active,
    SUM(allocated_requested) OVER (
      PARTITION BY device_id, slice_index
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS allocated_requested,
    SUM(active_requested) OVER (
      PARTITION BY device_id, slice_index
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS active_requested,
    reserved_before,
    reserved_best,
    allocated_before,
    allocated_best,
    active_before,
    active_best,
    allocated_requested_before,
    allocated_requested_best,
    active_requested_before,
    active_requested_best
  FROM changes
),
levels AS (
  SELECT
    device_id,
    trace_index,
    time_us,
    action,
    size,
    is_mark,
    reserved_before + reserved AS reserved,
    reserved_best,
    allocated_before + allocated AS allocated,
    allocated_best,
    active_before + active AS active,
    active_best,
    allocated_requested_before + allocated_requested AS allocated_requested,
    allocated_requested_best,
    active_requested_before + active_requested AS active_requested,
    active_requested_best
  FROM sums
),
compared AS (
  SELECT
    device_id,
    trace_index,
    time_us,
    action,
    size,
    is_mark,
    reserved,
    reserved_best,
    MAX(reserved) OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS reserved_earlier,
    allocated,
    allocated_best,
    MAX(allocated) OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS allocated_earlier,
    active,
    active_best,
    MAX(active) OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS active_earlier,
    allocated_requested,
    allocated_requested_best,
    MAX(allocated_requested) OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS allocated_requested_earlier,
    active_requested,
    active_requested_best,
    MAX(active_requested) OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS active_requested_earlier
  FROM levels
),
judged AS (
  SELECT
    device_id,
    trace_index,
    time_us,
    action,
    size,
    is_mark,
    reserved,
    allocated,
    active,
    allocated_requested,
    active_requested,
    CASE
      WHEN reserved > reserved_best
        AND (reserved_earlier IS NULL OR reserved > reserved_earlier)
        THEN 1
      ELSE 0
    END AS reserved_record,
    CASE
      WHEN allocated > allocated_best
        AND (allocated_earlier IS NULL OR allocated > allocated_earlier)
        THEN 1
      ELSE 0
    END AS allocated_record,
    CASE
      WHEN active > active_best
        AND (active_earlier IS NULL OR active > active_earlier)
        THEN 1
      ELSE 0
    END AS active_record,
    CASE
      WHEN allocated_requested > allocated_requested_best
        AND (
          allocated_requested_earlier IS NULL
          OR allocated_requested > allocated_requested_earlier
        )
        THEN 1
      ELSE 0
    END AS allocated_requested_record,
    CASE
      WHEN active_requested > active_requested_best
        AND (
          active_requested_earlier IS NULL
          OR active_requested > active_requested_earlier
        )
        THEN 1
      ELSE 0
    END AS active_requested_record
  FROM compared
)
SELECT
  device_id,
  trace_index,
  time_us,
  action,
  size,
  is_mark,
  reserved,
  allocated,
  active,
  allocated_requested,
  active_requested,
  reserved_record,
  allocated_record,
  active_record,
  allocated_requested_record,
  active_requested_record
FROM judged
WHERE is_mark = 1
  OR reserved_record = 1
  OR allocated_record = 1
  OR active_record = 1
  OR allocated_requested_record = 1
  OR active_requested_record = 1
