-- The five counters after every event, oldest first: the whole history of a device's memory.
--
-- Two ledgers: reserved, allocated and active are rounded sizes, as `memory_reserved()` and `memory_allocated()` report
-- them; the requested counters are what the program asked for. Every curve starts from its base, the value just before
-- the first event (replay_checks.base), so it is right where the recording began late too. Rounded curves are exact
-- where replay_checks says so. The order of time is trace_index. Devices are not to be added together. Entries of the
-- NPU's workspace allocator are left out: they are no events.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
-- @param first   BIGINT = NULL  Only events from this trace_index on; NULL for all.
-- @param last    BIGINT = NULL  Only events up to this trace_index; NULL for all.
--
-- @column device_id            BIGINT   devices.id.
-- @column device_index         BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column trace_index          BIGINT   Position of the event in the device's history.
-- @column time_us              BIGINT   Microseconds since the Unix epoch; NULL without a clock.
-- @column action               VARCHAR  What happened.
-- @column size                 BIGINT   Bytes of the event.
-- @column reserved             BIGINT   Bytes the allocator holds from the driver.
-- @column allocated            BIGINT   Bytes in allocated blocks, rounding included.
-- @column active               BIGINT   Bytes in blocks that are allocated or wait for a pending free, rounding
--   included.
-- @column allocated_requested  BIGINT   Bytes asked for in allocated blocks.
-- @column active_requested     BIGINT   Bytes asked for in blocks that are allocated or wait for a pending free.
WITH running AS (
  SELECT
    device_id,
    trace_index,
    time_us,
    action,
    size,
    SUM(reserved) OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS reserved,
    SUM(allocated) OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS allocated,
    SUM(active) OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS active,
    SUM(allocated_requested) OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS allocated_requested,
    SUM(active_requested) OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS active_requested
  FROM _exact_changes
)
SELECT
  r.device_id AS device_id,
  d.device_index AS device_index,
  r.trace_index AS trace_index,
  r.time_us AS time_us,
  r.action AS action,
  r.size AS size,
  b.reserved + r.reserved AS reserved,
  b.allocated + r.allocated AS allocated,
  b.active + r.active AS active,
  b.allocated_requested + r.allocated_requested AS allocated_requested,
  b.active_requested + r.active_requested AS active_requested
FROM running AS r
JOIN devices AS d
  ON d.id = r.device_id
LEFT JOIN _memory_base AS b
  ON b.device_id = r.device_id
WHERE ($device IS NULL OR d.device_index = $device)
  AND ($first IS NULL OR r.trace_index >= $first)
  AND ($last IS NULL OR r.trace_index <= $last)
ORDER BY r.device_id, r.trace_index
