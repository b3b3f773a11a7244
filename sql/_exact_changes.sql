-- What every event adds to the five counters, block sizes as they are: _event_changes with _rounding_excess.
--
-- For those who look at events one by one; sums over many come cheaper from _slice_changes.
--
-- @column device_id            BIGINT   devices.id.
-- @column trace_index          BIGINT   Position of the event in the device's history.
-- @column time_us              BIGINT   Microseconds since the Unix epoch; NULL without a clock.
-- @column action               VARCHAR  What happened.
-- @column size                 BIGINT   Bytes of the event.
-- @column stream               BIGINT   Stream, as the allocator's pointer-sized number.
-- @column pool_id_0            BIGINT   First word of the memory pool's id; NULL where the producer does not write it.
-- @column pool_id_1            BIGINT   Second word of the memory pool's id.
-- @column is_mark              BIGINT   1 for an event of no memory, such as `oom` or `snapshot`; else 0.
-- @column reserved             BIGINT   Change of the bytes the allocator holds from the driver.
-- @column allocated            BIGINT   Change of the bytes in allocated blocks, rounding included.
-- @column active               BIGINT   Change of the bytes in allocated and pending-free blocks, rounding included.
-- @column allocated_requested  BIGINT   Change of the bytes asked for in allocated blocks.
-- @column active_requested     BIGINT   Change of the bytes asked for in allocated and pending-free blocks.
WITH excess AS (
  SELECT
    device_id,
    trace_index,
    SUM(allocated) AS allocated,
    SUM(active) AS active
  FROM _rounding_excess
  GROUP BY device_id, trace_index
)
SELECT
  e.device_id AS device_id,
  e.trace_index AS trace_index,
  e.time_us AS time_us,
  e.action AS action,
  e.size AS size,
  e.stream AS stream,
  e.pool_id_0 AS pool_id_0,
  e.pool_id_1 AS pool_id_1,
  e.is_mark AS is_mark,
  e.reserved AS reserved,
  e.allocated + COALESCE(x.allocated, 0) AS allocated,
  e.active + COALESCE(x.active, 0) AS active,
  e.allocated_requested AS allocated_requested,
  e.active_requested AS active_requested
FROM _event_changes AS e
LEFT JOIN excess AS x
  ON x.device_id = e.device_id
  AND x.trace_index = e.trace_index
