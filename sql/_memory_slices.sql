-- The history in slices: what the five counters were after each, and the most they can have been within.
--
-- No event's value is looked at: a slice's change is a sum, so millions of events cost one aggregation. `_most` is the
-- value before the slice plus all that was added in it; `_best` is the highest value known from before it. Where the
-- one is not above the other, the slice cannot hold a new peak.
--
-- @kept
-- @column device_id                  BIGINT  devices.id.
-- @column slice_index                BIGINT  Number of the slice, from 0: see _scale.
-- @column first_index                BIGINT  trace_index of its first event.
-- @column last_index                 BIGINT  trace_index of its last event.
-- @column time_us                    BIGINT  Latest time of an event in it, in microseconds since the Unix epoch;
--   NULL without a clock.
-- @column event_count                BIGINT  Events in it.
-- @column mark_count                 BIGINT  Of them, events that change nothing.
-- @column reserved                   BIGINT  Bytes the allocator holds from the driver, after the last event.
-- @column allocated                  BIGINT  Bytes in allocated blocks, rounding included, after the last event.
-- @column active                     BIGINT  Bytes in allocated and pending-free blocks, rounding included, after
--   the last event.
-- @column allocated_requested        BIGINT  Bytes asked for in allocated blocks, after the last event.
-- @column active_requested           BIGINT  Bytes asked for in allocated and pending-free blocks, after the last
--   event.
-- @column reserved_change            BIGINT  Change over the slice.
-- @column allocated_change           BIGINT  Change over the slice.
-- @column active_change              BIGINT  Change over the slice.
-- @column allocated_requested_change BIGINT  Change over the slice.
-- @column active_requested_change    BIGINT  Change over the slice.
-- @column reserved_most              BIGINT  Bytes that it was at most within the slice.
-- @column allocated_most             BIGINT  Bytes that it was at most within the slice.
-- @column active_most                BIGINT  Bytes that it was at most within the slice.
-- @column allocated_requested_most   BIGINT  Bytes that it was at most within the slice.
-- @column active_requested_most      BIGINT  Bytes that it was at most within the slice.
-- @column reserved_best              BIGINT  Highest known value before the slice, base included.
-- @column allocated_best             BIGINT  Highest known value before the slice, base included.
-- @column active_best                BIGINT  Highest known value before the slice, base included.
-- @column allocated_requested_best   BIGINT  Highest known value before the slice, base included.
-- @column active_requested_best      BIGINT  Highest known value before the slice, base included.
WITH slices AS (
  SELECT
    device_id,
    slice_index,
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
  FROM _slice_changes
  GROUP BY device_id, slice_index
),
running AS (
  SELECT
    device_id,
    slice_index,
    first_index,
    last_index,
    time_us,
    event_count,
    mark_count,
    SUM(reserved_change) OVER (
      PARTITION BY device_id
      ORDER BY slice_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS reserved,
    SUM(allocated_change) OVER (
      PARTITION BY device_id
      ORDER BY slice_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS allocated,
    SUM(active_change) OVER (
      PARTITION BY device_id
      ORDER BY slice_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS active,
    SUM(allocated_requested_change) OVER (
      PARTITION BY device_id
      ORDER BY slice_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS allocated_requested,
    SUM(active_requested_change) OVER (
      PARTITION BY device_id
      ORDER BY slice_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS active_requested,
    reserved_change,
    allocated_change,
    active_change,
    allocated_requested_change,
    active_requested_change,
    reserved_rise,
    allocated_rise,
    active_rise,
    requested_rise
  FROM slices
),
-- Where no base is known, there is no level either.
levels AS (
  SELECT
    r.device_id AS device_id,
    r.slice_index AS slice_index,
    r.first_index AS first_index,
    r.last_index AS last_index,
    r.time_us AS time_us,
    r.event_count AS event_count,
    r.mark_count AS mark_count,
    b.reserved + r.reserved AS reserved,
    r.reserved_change AS reserved_change,
    b.reserved + r.reserved - r.reserved_change AS reserved_before,
    r.reserved_rise AS reserved_rise,
    b.allocated + r.allocated AS allocated,
    r.allocated_change AS allocated_change,
    b.allocated + r.allocated - r.allocated_change AS allocated_before,
    r.allocated_rise AS allocated_rise,
    b.active + r.active AS active,
    r.active_change AS active_change,
    b.active + r.active - r.active_change AS active_before,
    r.active_rise AS active_rise,
    b.allocated_requested + r.allocated_requested AS allocated_requested,
    r.allocated_requested_change AS allocated_requested_change,
    b.allocated_requested + r.allocated_requested - r.allocated_requested_change
      AS allocated_requested_before,
    b.active_requested + r.active_requested AS active_requested,
    r.active_requested_change AS active_requested_change,
    b.active_requested + r.active_requested - r.active_requested_change AS active_requested_before,
    r.requested_rise AS requested_rise
  FROM running AS r
  LEFT JOIN _memory_base AS b
    ON b.device_id = r.device_id
)
SELECT
  device_id,
  slice_index,
  first_index,
  last_index,
  time_us,
  event_count,
  mark_count,
  reserved,
  allocated,
  active,
  allocated_requested,
  active_requested,
  reserved_change,
  allocated_change,
  active_change,
  allocated_requested_change,
  active_requested_change,
  reserved_before + reserved_rise AS reserved_most,
  allocated_before + allocated_rise AS allocated_most,
  active_before + active_rise AS active_most,
  allocated_requested_before + requested_rise AS allocated_requested_most,
  active_requested_before + requested_rise AS active_requested_most,
  MAX(reserved_before) OVER (
    PARTITION BY device_id
    ORDER BY slice_index
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS reserved_best,
  MAX(allocated_before) OVER (
    PARTITION BY device_id
    ORDER BY slice_index
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS allocated_best,
  MAX(active_before) OVER (
    PARTITION BY device_id
    ORDER BY slice_index
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS active_best,
  MAX(allocated_requested_before) OVER (
    PARTITION BY device_id
    ORDER BY slice_index
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS allocated_requested_best,
  MAX(active_requested_before) OVER (
    PARTITION BY device_id
    ORDER BY slice_index
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS active_requested_best
FROM levels
