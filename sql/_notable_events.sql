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
WITH slices AS (
  SELECT
    device_id,
    slice_index,
    first_index,
    last_index,
    mark_count,
    reserved,
    reserved - reserved_change AS reserved_before,
    reserved_most,
    reserved_best,
    MAX(reserved) OVER (PARTITION BY device_id) AS reserved_top,
    allocated,
    allocated - allocated_change AS allocated_before,
    allocated_most,
    allocated_best,
    MAX(allocated) OVER (PARTITION BY device_id) AS allocated_top,
    active,
    active - active_change AS active_before,
    active_most,
    active_best,
    MAX(active) OVER (PARTITION BY device_id) AS active_top,
    allocated_requested,
    allocated_requested - allocated_requested_change AS allocated_requested_before,
    allocated_requested_most,
    allocated_requested_best,
    MAX(allocated_requested) OVER (PARTITION BY device_id) AS allocated_requested_top,
    active_requested,
    active_requested - active_requested_change AS active_requested_before,
    active_requested_most,
    active_requested_best,
    MAX(active_requested) OVER (PARTITION BY device_id) AS active_requested_top
  FROM _memory_slices
),
-- A peak is above all that was before it, and not below the end of any slice. Its slice has events.
candidates AS (
  SELECT
    device_id,
    slice_index,
    first_index,
    last_index,
    reserved_best,
    reserved_before - COALESCE(
      LAG(reserved) OVER (
        PARTITION BY device_id
        ORDER BY slice_index
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ),
      0
    ) AS reserved_skip,
    allocated_best,
    allocated_before - COALESCE(
      LAG(allocated) OVER (
        PARTITION BY device_id
        ORDER BY slice_index
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ),
      0
    ) AS allocated_skip,
    active_best,
    active_before - COALESCE(
      LAG(active) OVER (
        PARTITION BY device_id
        ORDER BY slice_index
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ),
      0
    ) AS active_skip,
    allocated_requested_best,
    allocated_requested_before - COALESCE(
      LAG(allocated_requested) OVER (
        PARTITION BY device_id
        ORDER BY slice_index
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ),
      0
    ) AS allocated_requested_skip,
    active_requested_best,
    active_requested_before - COALESCE(
      LAG(active_requested) OVER (
        PARTITION BY device_id
        ORDER BY slice_index
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ),
      0
    ) AS active_requested_skip
  FROM slices
  WHERE first_index IS NOT NULL
    AND (
      mark_count > 0
      OR (reserved_most > reserved_best AND reserved_most >= reserved_top)
      OR (allocated_most > allocated_best AND allocated_most >= allocated_top)
      OR (active_most > active_best AND active_most >= active_top)
      OR (
        allocated_requested_most > allocated_requested_best
        AND allocated_requested_most >= allocated_requested_top
      )
      OR (
        active_requested_most > active_requested_best
        AND active_requested_most >= active_requested_top
      )
    )
),
-- The first event of a candidate stands for all between it and the one before. What the rule of a block's size lacks
-- comes before its event in a row of its own: a join of every event would cost millions of them their order.
changes AS (
  SELECT
    e.device_id AS device_id,
    e.trace_index AS trace_index,
    1 AS is_event,
    e.time_us AS time_us,
    e.action AS action,
    e.size AS size,
    e.is_mark AS is_mark,
    e.reserved + CASE e.trace_index WHEN c.first_index THEN c.reserved_skip ELSE 0 END
      AS reserved,
    c.reserved_best AS reserved_best,
    e.allocated + CASE e.trace_index WHEN c.first_index THEN c.allocated_skip ELSE 0 END
      AS allocated,
    c.allocated_best AS allocated_best,
    e.active + CASE e.trace_index WHEN c.first_index THEN c.active_skip ELSE 0 END
      AS active,
    c.active_best AS active_best,
    e.allocated_requested + CASE e.trace_index WHEN c.first_index THEN c.allocated_requested_skip ELSE 0 END
      AS allocated_requested,
    c.allocated_requested_best AS allocated_requested_best,
    e.active_requested + CASE e.trace_index WHEN c.first_index THEN c.active_requested_skip ELSE 0 END
      AS active_requested,
    c.active_requested_best AS active_requested_best
  FROM candidates AS c
  JOIN _event_changes AS e
    ON e.device_id = c.device_id
    AND e.slice_index = c.slice_index
    -- Says no more; but SQLite has an index on it.
    AND e.trace_index BETWEEN c.first_index AND c.last_index
  UNION ALL
  SELECT
    x.device_id AS device_id,
    x.trace_index AS trace_index,
    0 AS is_event,
    CAST(NULL AS BIGINT) AS time_us,
    -- Without a type: a union would give that to the texts of files and of rows in memory, which have two.
    NULL AS action,
    CAST(NULL AS BIGINT) AS size,
    0 AS is_mark,
    0 AS reserved,
    CAST(NULL AS BIGINT) AS reserved_best,
    x.allocated AS allocated,
    CAST(NULL AS BIGINT) AS allocated_best,
    x.active AS active,
    CAST(NULL AS BIGINT) AS active_best,
    0 AS allocated_requested,
    CAST(NULL AS BIGINT) AS allocated_requested_best,
    0 AS active_requested,
    CAST(NULL AS BIGINT) AS active_requested_best
  FROM candidates AS c
  JOIN _rounding_excess AS x
    ON x.device_id = c.device_id
    AND x.slice_index = c.slice_index
),
levels AS (
  SELECT
    device_id,
    trace_index,
    is_event,
    time_us,
    action,
    size,
    is_mark,
    SUM(reserved) OVER (
      PARTITION BY device_id
      ORDER BY trace_index, is_event
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS reserved,
    reserved_best,
    SUM(allocated) OVER (
      PARTITION BY device_id
      ORDER BY trace_index, is_event
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS allocated,
    allocated_best,
    SUM(active) OVER (
      PARTITION BY device_id
      ORDER BY trace_index, is_event
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS active,
    active_best,
    SUM(allocated_requested) OVER (
      PARTITION BY device_id
      ORDER BY trace_index, is_event
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS allocated_requested,
    allocated_requested_best,
    SUM(active_requested) OVER (
      PARTITION BY device_id
      ORDER BY trace_index, is_event
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS active_requested,
    active_requested_best
  FROM changes
),
compared AS (
  SELECT
    device_id,
    trace_index,
    is_event,
    time_us,
    action,
    size,
    is_mark,
    reserved,
    reserved_best,
    MAX(CASE is_event WHEN 1 THEN reserved END) OVER (
      PARTITION BY device_id
      ORDER BY trace_index, is_event
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS reserved_earlier,
    allocated,
    allocated_best,
    MAX(CASE is_event WHEN 1 THEN allocated END) OVER (
      PARTITION BY device_id
      ORDER BY trace_index, is_event
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS allocated_earlier,
    active,
    active_best,
    MAX(CASE is_event WHEN 1 THEN active END) OVER (
      PARTITION BY device_id
      ORDER BY trace_index, is_event
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS active_earlier,
    allocated_requested,
    allocated_requested_best,
    MAX(CASE is_event WHEN 1 THEN allocated_requested END) OVER (
      PARTITION BY device_id
      ORDER BY trace_index, is_event
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS allocated_requested_earlier,
    active_requested,
    active_requested_best,
    MAX(CASE is_event WHEN 1 THEN active_requested END) OVER (
      PARTITION BY device_id
      ORDER BY trace_index, is_event
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS active_requested_earlier
  FROM levels
),
-- Where no base is known, no value from before is, and there is no level either.
judged AS (
  SELECT
    device_id,
    trace_index,
    is_event,
    time_us,
    action,
    size,
    is_mark,
    CASE WHEN reserved_best IS NOT NULL THEN reserved END AS reserved,
    CASE WHEN allocated_best IS NOT NULL THEN allocated END AS allocated,
    CASE WHEN active_best IS NOT NULL THEN active END AS active,
    CASE WHEN allocated_requested_best IS NOT NULL THEN allocated_requested END AS allocated_requested,
    CASE WHEN active_requested_best IS NOT NULL THEN active_requested END AS active_requested,
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
        AND (allocated_requested_earlier IS NULL OR allocated_requested > allocated_requested_earlier)
        THEN 1
      ELSE 0
    END AS allocated_requested_record,
    CASE
      WHEN active_requested > active_requested_best
        AND (active_requested_earlier IS NULL OR active_requested > active_requested_earlier)
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
WHERE is_event = 1
  AND (
    is_mark = 1
    OR reserved_record = 1
    OR allocated_record = 1
    OR active_record = 1
    OR allocated_requested_record = 1
    OR active_requested_record = 1
  )
