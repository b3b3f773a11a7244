-- Events worth pointing at, with the five counters at each: where a counter had its peak, and what changes no memory.
--
-- What changes no memory is a mark: `oom`, `snapshot`, `annotate` and whatever an unknown producer wrote. An `oom`
-- stands behind what the allocator tried before it gave up, so the counters are those of the failure. A `snapshot` is
-- an earlier dump: its size is what the allocator said was active then. Peaks come first, then `oom`, then the rest by
-- time. A peak that the window began with has no event.
--
-- @param limit   BIGINT = 1000  Only the first rows; NULL for all.
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id            BIGINT  devices.id.
-- @column device_index         BIGINT  Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column trace_index          BIGINT  Position of the event in the device's history.
-- @column time_us              BIGINT  Microseconds since the Unix epoch; NULL without a clock.
-- @column action               VARCHAR What happened.
-- @column size                 BIGINT  Bytes of the event: the rounded request of an `oom`, active bytes of a
--   `snapshot`.
-- @column is_peak              BIGINT  1 where a counter reached its peak, else 0.
-- @column reserved             BIGINT  Bytes the allocator holds from the driver.
-- @column allocated            BIGINT  Bytes in allocated blocks, rounding included.
-- @column active               BIGINT  Bytes in allocated and pending-free blocks, rounding included.
-- @column allocated_requested  BIGINT  Bytes asked for in allocated blocks.
-- @column active_requested     BIGINT  Bytes asked for in allocated and pending-free blocks.
WITH last_records AS (
  SELECT
    device_id,
    MAX(CASE WHEN reserved_record = 1 THEN trace_index END) AS reserved,
    MAX(CASE WHEN allocated_record = 1 THEN trace_index END) AS allocated,
    MAX(CASE WHEN active_record = 1 THEN trace_index END) AS active,
    MAX(CASE WHEN allocated_requested_record = 1 THEN trace_index END) AS allocated_requested,
    MAX(CASE WHEN active_requested_record = 1 THEN trace_index END) AS active_requested
  FROM _notable_events
  GROUP BY device_id
),
marked AS (
  SELECT
    e.device_id AS device_id,
    e.trace_index AS trace_index,
    e.time_us AS time_us,
    e.action AS action,
    e.size AS size,
    e.is_mark AS is_mark,
    CASE
      WHEN e.trace_index IN (
        l.reserved, l.allocated, l.active, l.allocated_requested, l.active_requested
      ) THEN 1
      ELSE 0
    END AS is_peak,
    e.reserved AS reserved,
    e.allocated AS allocated,
    e.active AS active,
    e.allocated_requested AS allocated_requested,
    e.active_requested AS active_requested
  FROM _notable_events AS e
  JOIN last_records AS l
    ON l.device_id = e.device_id
)
SELECT
  m.device_id AS device_id,
  d.device_index AS device_index,
  m.trace_index AS trace_index,
  m.time_us AS time_us,
  m.action AS action,
  m.size AS size,
  m.is_peak AS is_peak,
  m.reserved AS reserved,
  m.allocated AS allocated,
  m.active AS active,
  m.allocated_requested AS allocated_requested,
  m.active_requested AS active_requested
FROM marked AS m
JOIN devices AS d
  ON d.id = m.device_id
WHERE (m.is_mark = 1 OR m.is_peak = 1)
  AND ($device IS NULL OR d.device_index = $device)
ORDER BY
  m.is_peak DESC,
  CASE m.action WHEN 'oom' THEN 0 ELSE 1 END,
  d.device_index,
  m.trace_index
LIMIT $limit
