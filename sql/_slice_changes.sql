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
WITH changes AS (
  SELECT
    device_id,
    slice_index,
    stream,
    pool_id_0,
    pool_id_1,
    is_small,
    1 AS is_event,
    trace_index,
    time_us,
    is_mark,
    reserved,
    allocated,
    active,
    -- Only an alloc makes both rise, by the same.
    allocated AS active_risen,
    allocated_requested,
    active_requested
  FROM _event_changes
  UNION ALL
  SELECT
    device_id,
    slice_index,
    stream,
    pool_id_0,
    pool_id_1,
    is_small,
    0 AS is_event,
    CAST(NULL AS BIGINT) AS trace_index,
    CAST(NULL AS BIGINT) AS time_us,
    0 AS is_mark,
    0 AS reserved,
    allocated,
    active,
    active AS active_risen,
    0 AS allocated_requested,
    0 AS active_requested
  FROM _rounding_excess
)
-- Half of a change and of what was moved either way is what came.
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
  SUM(is_event) AS event_count,
  SUM(is_mark) AS mark_count,
  SUM(reserved) AS reserved_change,
  (SUM(reserved) + SUM(ABS(reserved))) / NULLIF(2, 0) AS reserved_rise,
  SUM(allocated) AS allocated_change,
  (SUM(allocated) + SUM(ABS(allocated))) / NULLIF(2, 0) AS allocated_rise,
  SUM(active) AS active_change,
  (SUM(active_risen) + SUM(ABS(active_risen))) / NULLIF(2, 0) AS active_rise,
  SUM(allocated_requested) AS allocated_requested_change,
  SUM(active_requested) AS active_requested_change,
  (SUM(allocated_requested) + SUM(ABS(allocated_requested))) / NULLIF(2, 0) AS requested_rise
FROM changes
GROUP BY device_id, slice_index, stream, pool_id_0, pool_id_1, is_small
