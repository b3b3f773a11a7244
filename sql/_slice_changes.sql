-- What every slice of the history changed, by stream, memory pool and kind of request.
--
-- No event's value is looked at: changes are sums, so millions of events cost one aggregation, of which the course of all
-- counters and the causes of growth are made. Bytes that came are told from those that went: together with the value
-- before the slice they bound what a counter can have been within.
--
-- @kept
-- @column device_id                   BIGINT  devices.id.
-- @column slice_index                 BIGINT  Number of the slice, from 0: see _scale.
-- @column stream                      BIGINT  Stream.
-- @column pool_id_0                   BIGINT  First word of the memory pool's id; NULL where the events do not say it.
-- @column pool_id_1                   BIGINT  Second word; NULL likewise.
-- @column is_small                    BIGINT  1 for events of up to 1 MiB, as requests of kind small are; else 0.
-- @column first_index                 BIGINT  trace_index of the first event.
-- @column last_index                  BIGINT  trace_index of the last event.
-- @column time_us                     BIGINT  Latest time of an event, in microseconds since the Unix epoch; NULL without a
--   clock.
-- @column event_count                 BIGINT  Events.
-- @column mark_count                  BIGINT  Of them, events that change nothing.
-- @column reserved_change             BIGINT  Change of reserved.
-- @column reserved_rise               BIGINT  Bytes by which reserved grew, without those by which it shrank.
-- @column allocated_change            BIGINT  Change of allocated, rounding included.
-- @column allocated_rise              BIGINT  Bytes by which it grew at most, without those by which it shrank.
-- @column active_change               BIGINT  Change of active, rounding included.
-- @column active_rise                 BIGINT  Bytes by which it grew at most, without those by which it shrank.
-- @column allocated_requested_change  BIGINT  Change of allocated_requested.
-- @column active_requested_change     BIGINT  Change of active_requested.
-- @column requested_rise              BIGINT  Bytes by which both grew, without those by which they shrank.
WITH by_rule AS (
  SELECT
    device_id,
    slice_index,
    stream,
    pool_id_0,
    pool_id_1,
    is_small,
    MIN(trace_index) AS first_index,
    MAX(trace_index) AS last_index,
    MAX(time_us) AS time_us,
    COUNT(*) AS event_count,
    SUM(is_mark) AS mark_count,
    SUM(reserved) AS reserved_change,
    SUM(ABS(reserved)) AS reserved_moved,
    SUM(allocated) AS allocated_change,
    SUM(ABS(allocated)) AS allocated_moved,
    SUM(active) AS active_change,
    SUM(allocated_requested) AS allocated_requested_change,
    SUM(ABS(allocated_requested)) AS requested_moved,
    SUM(active_requested) AS active_requested_change
  FROM _event_changes
  GROUP BY device_id, slice_index, stream, pool_id_0, pool_id_1, is_small
),
-- Half of a change and what was moved either way is what came.
parts AS (
  SELECT
    device_id,
    slice_index,
    stream,
    pool_id_0,
    pool_id_1,
    is_small,
    first_index,
    last_index,
    time_us,
    event_count,
    mark_count,
    reserved_change,
    (reserved_change + reserved_moved) / NULLIF(2, 0) AS reserved_rise,
    allocated_change,
    (allocated_change + allocated_moved) / NULLIF(2, 0) AS allocated_rise,
    active_change,
    (allocated_change + allocated_moved) / NULLIF(2, 0) AS active_rise,
    allocated_requested_change,
    active_requested_change,
    (allocated_requested_change + requested_moved) / NULLIF(2, 0) AS requested_rise
  FROM by_rule
  UNION ALL
  SELECT
    device_id,
    slice_index,
    stream,
    pool_id_0,
    pool_id_1,
    is_small,
    CAST(NULL AS BIGINT) AS first_index,
    CAST(NULL AS BIGINT) AS last_index,
    CAST(NULL AS BIGINT) AS time_us,
    0 AS event_count,
    0 AS mark_count,
    0 AS reserved_change,
    0 AS reserved_rise,
    allocated AS allocated_change,
    (allocated + ABS(allocated)) / NULLIF(2, 0) AS allocated_rise,
    active AS active_change,
    (active + ABS(active)) / NULLIF(2, 0) AS active_rise,
    0 AS allocated_requested_change,
    0 AS active_requested_change,
    0 AS requested_rise
  FROM _rounding_excess
)
SELECT
  device_id,
  slice_index,
  stream,
  pool_id_0,
  pool_id_1,
  is_small,
  MIN(first_index) AS first_index,
  MAX(last_index) AS last_index,
  MAX(time_us) AS time_us,
  SUM(event_count) AS event_count,
  SUM(mark_count) AS mark_count,
  SUM(reserved_change) AS reserved_change,
  SUM(reserved_rise) AS reserved_rise,
  SUM(allocated_change) AS allocated_change,
  SUM(allocated_rise) AS allocated_rise,
  SUM(active_change) AS active_change,
  SUM(active_rise) AS active_rise,
  SUM(allocated_requested_change) AS allocated_requested_change,
  SUM(active_requested_change) AS active_requested_change,
  SUM(requested_rise) AS requested_rise
FROM parts
GROUP BY device_id, slice_index, stream, pool_id_0, pool_id_1, is_small
