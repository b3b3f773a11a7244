-- What every event adds to the five counters, block sizes by the rule of _scale.
--
-- Entries of the NPU's workspace allocator are left out: they are no events. Markers change nothing, nor do events of
-- other memory pools than the one that the dump was of. Where one of the two free events was never recorded, the other
-- counts for both. An event without a size counts as 0.
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
-- @column is_small             BIGINT   1 where size, rounded as that of a block, is up to 1 MiB; else 0.
-- @column is_mark              BIGINT   1 for an event of no memory, such as `oom` or `snapshot`; else 0.
-- @column reserved             BIGINT   Change of the bytes the allocator holds from the driver.
-- @column allocated            BIGINT   Change of the bytes in allocated blocks, rounding included.
-- @column active               BIGINT   Change of the bytes in allocated and pending-free blocks, rounding included.
-- @column allocated_requested  BIGINT   Change of the bytes asked for in allocated blocks.
-- @column active_requested     BIGINT   Change of the bytes asked for in allocated and pending-free blocks.
WITH sized AS (
  SELECT
    t.device_id AS device_id,
    t.trace_index AS trace_index,
    t.trace_index / NULLIF((SELECT MAX(slice_width) FROM _scale), 0) AS slice_index,
    t.time_us AS time_us,
    t.action AS action,
    t.size AS size,
    t.stream AS stream,
    t.pool_id_0 AS pool_id_0,
    t.pool_id_1 AS pool_id_1,
    CASE WHEN f.action IS NULL THEN 1 ELSE 0 END AS is_mark,
    COALESCE(f.reserved_sign, 0) AS reserved_sign,
    COALESCE(f.allocated_sign, 0) AS allocated_sign,
    COALESCE(f.active_sign, 0) AS active_sign,
    CASE
      WHEN t.pool_id_0 <> f.only_pool_0 OR t.pool_id_1 <> f.only_pool_1 THEN 0
      ELSE COALESCE(t.size, 0)
    END AS event_size,
    CASE
      -- A mark says what size it likes.
      WHEN f.action IS NULL THEN 0
      WHEN t.pool_id_0 <> f.only_pool_0 OR t.pool_id_1 <> f.only_pool_1 THEN 0
      ELSE COALESCE((t.size + (SELECT MAX(padding) FROM _scale) + 511) / NULLIF(512, 0) * 512, 0)
    END AS rule_size
  FROM traces AS t
  LEFT JOIN _event_signs AS f
    ON f.device_id = t.device_id
    AND f.action = t.action
  WHERE t.is_workspace = 0
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
  CAST(rule_size <= 1048576 AS BIGINT) AS is_small,
  is_mark,
  reserved_sign * event_size AS reserved,
  allocated_sign * rule_size AS allocated,
  active_sign * rule_size AS active,
  allocated_sign * event_size AS allocated_requested,
  active_sign * event_size AS active_requested
FROM sized
