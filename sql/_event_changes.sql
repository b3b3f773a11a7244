-- What every event adds to the five counters, block sizes by the rule of _scale.
--
-- Entries of the NPU's workspace allocator are left out: they are no events. Markers change nothing. An event without a
-- size counts as 0.
--
-- @column device_id            BIGINT   devices.id.
-- @column trace_index          BIGINT   Position of the event in the device's history.
-- @column slice_index          BIGINT   Slice of events it lies in, from 0: see _scale.
-- @column time_us              BIGINT   Microseconds since the Unix epoch; NULL without a clock.
-- @column action               VARCHAR  What happened.
-- @column size                 BIGINT   Bytes of the event.
-- @column stream               BIGINT   Stream, as the allocator's pointer-sized number.
-- @column pool_id_0            BIGINT   First word of the memory pool's id; NULL where the producer does not write it.
-- @column pool_id_1            BIGINT   Second word of the memory pool's id.
-- @column is_small             BIGINT   1 where the event is about memory for requests of up to 1 MiB, else 0. Of segment events
--   it is told by the size: 2 MiB, or for mapped ranges no multiple of 20 MiB, is small.
-- @column is_mark              BIGINT   1 for an event that changes nothing, such as `oom` or `snapshot`; else 0.
-- @column reserved             BIGINT   Change of the bytes the allocator holds from the driver.
-- @column allocated            BIGINT   Change of the bytes in allocated blocks, rounding included.
-- @column active               BIGINT   Change of the bytes in allocated and pending-free blocks, rounding included.
-- @column allocated_requested  BIGINT   Change of the bytes asked for in allocated blocks.
-- @column active_requested     BIGINT   Change of the bytes asked for in allocated and pending-free blocks.
WITH sized AS (
  SELECT
    device_id,
    trace_index,
    trace_index / NULLIF((SELECT MAX(slice_width) FROM _scale), 0) AS slice_index,
    time_us,
    action,
    size,
    stream,
    pool_id_0,
    pool_id_1,
    CAST(action IN ('segment_alloc', 'segment_map') AS BIGINT) AS is_growth,
    CAST(action IN ('segment_free', 'segment_unmap') AS BIGINT) AS is_shrinkage,
    CAST(action = 'alloc' AS BIGINT) AS is_alloc,
    CAST(action = 'free_requested' AS BIGINT) AS is_request,
    CAST(action = 'free_completed' AS BIGINT) AS is_completion,
    COALESCE(size, 0) AS event_size,
    COALESCE(size + (SELECT MAX(padding) FROM _scale), 0) AS padded_size
  FROM traces
  WHERE is_workspace = 0
),
-- What is so or not is a number here: for millions of events products cost less than a CASE.
signed AS (
  SELECT
    device_id,
    trace_index,
    slice_index,
    time_us,
    action,
    size,
    stream,
    pool_id_0,
    pool_id_1,
    event_size,
    padded_size,
    (padded_size + 511) / NULLIF(512, 0) * 512 AS rule_size,
    is_growth - is_shrinkage AS reserved_sign,
    is_alloc - is_request AS allocated_sign,
    is_alloc - is_completion AS active_sign,
    1 - is_growth - is_shrinkage - is_alloc - is_request - is_completion AS is_mark
  FROM sized
)
SELECT
  device_id,
  trace_index,
  slice_index,
  time_us,
  action,
  size,
  stream,
  pool_id_0,
  pool_id_1,
  CAST(
    (reserved_sign = 0 AND padded_size <= 1048576)
    OR (
      reserved_sign <> 0
      AND (
        (action IN ('segment_alloc', 'segment_free') AND event_size <= 2097152)
        OR (action IN ('segment_map', 'segment_unmap') AND event_size % 20971520 <> 0)
      )
    ) AS BIGINT
  ) AS is_small,
  is_mark,
  reserved_sign * event_size AS reserved,
  allocated_sign * rule_size AS allocated,
  active_sign * rule_size AS active,
  allocated_sign * event_size AS allocated_requested,
  active_sign * event_size AS active_requested
FROM signed
