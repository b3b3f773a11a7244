-- The peak of each counter within the recorded window, with the event that reached it.
--
-- Every counter has a peak of its own; they need not be reached at the same event. A peak that the window began with
-- has trace_index -1: the base was never exceeded. Of several events that reach it, the first counts. What was before
-- the window, because the ring buffer forgot it or the recording began late, is not known: that peak may have been
-- higher. Where no event was recorded no peak is known: the final state says nothing of what was before it. Peaks are not
-- those of `max_memory_allocated()`, which counts since its last reset.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id     BIGINT   devices.id.
-- @column device_index  BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column counter       VARCHAR  reserved, allocated, active (rounded sizes); allocated_requested, active_requested.
-- @column base          BIGINT   Bytes just before the first event: at_end less what the events changed, so at_end itself
--   where none was recorded.
-- @column peak          BIGINT   Bytes at the peak; NULL where no event was recorded or the base is not known.
-- @column trace_index   BIGINT   Event after which it was reached first; -1 for the base; NULL without a peak.
-- @column time_us       BIGINT   Time of that event in microseconds since the Unix epoch; NULL without one.
-- @column at_end        BIGINT   Bytes after the last event.
-- @column exact         BIGINT   1 where every block's real size is known, 0 where the curve is computed from the rules
--   of rounding.
WITH records AS (
  SELECT
    device_id,
    MAX(CASE WHEN reserved_record = 1 THEN reserved END) AS reserved,
    MAX(CASE WHEN reserved_record = 1 THEN trace_index END) AS reserved_index,
    MAX(CASE WHEN allocated_record = 1 THEN allocated END) AS allocated,
    MAX(CASE WHEN allocated_record = 1 THEN trace_index END) AS allocated_index,
    MAX(CASE WHEN active_record = 1 THEN active END) AS active,
    MAX(CASE WHEN active_record = 1 THEN trace_index END) AS active_index,
    MAX(CASE WHEN allocated_requested_record = 1 THEN allocated_requested END)
      AS allocated_requested,
    MAX(CASE WHEN allocated_requested_record = 1 THEN trace_index END)
      AS allocated_requested_index,
    MAX(CASE WHEN active_requested_record = 1 THEN active_requested END) AS active_requested,
    MAX(CASE WHEN active_requested_record = 1 THEN trace_index END) AS active_requested_index
  FROM _notable_events
  GROUP BY device_id
),
peaks AS (
  SELECT
    c.device_id AS device_id,
    c.counter AS counter,
    c.base AS base,
    c.final AS final,
    c.exact AS exact,
    CASE WHEN k.first_index IS NOT NULL THEN c.base END AS base_peak,
    CASE c.counter
      WHEN 'reserved' THEN r.reserved
      WHEN 'allocated' THEN r.allocated
      WHEN 'active' THEN r.active
      WHEN 'allocated_requested' THEN r.allocated_requested
      WHEN 'active_requested' THEN r.active_requested
    END AS record,
    CASE c.counter
      WHEN 'reserved' THEN r.reserved_index
      WHEN 'allocated' THEN r.allocated_index
      WHEN 'active' THEN r.active_index
      WHEN 'allocated_requested' THEN r.allocated_requested_index
      WHEN 'active_requested' THEN r.active_requested_index
    END AS record_index
  FROM replay_checks AS c
  LEFT JOIN _event_scale AS k
    ON k.device_id = c.device_id
  LEFT JOIN records AS r
    ON r.device_id = c.device_id
)
SELECT
  p.device_id AS device_id,
  d.device_index AS device_index,
  p.counter AS counter,
  p.base AS base,
  COALESCE(p.record, p.base_peak) AS peak,
  CASE WHEN p.base_peak IS NOT NULL THEN COALESCE(p.record_index, -1) END AS trace_index,
  e.time_us AS time_us,
  p.final AS at_end,
  p.exact AS exact
FROM peaks AS p
JOIN devices AS d
  ON d.id = p.device_id
LEFT JOIN _notable_events AS e
  ON e.device_id = p.device_id
  AND e.trace_index = p.record_index
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY
  d.device_index,
  CASE p.counter
    WHEN 'reserved' THEN 1
    WHEN 'allocated' THEN 2
    WHEN 'active' THEN 3
    WHEN 'allocated_requested' THEN 4
    WHEN 'active_requested' THEN 5
  END
