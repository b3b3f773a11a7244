-- The course of the five counters at no more than 20,000 events of the history, evenly spread.
--
-- A row is the end of a slice of events; its values are those after the slice's last event, as in memory_timeline. What
-- went up and down within a slice is not seen: peaks are in memory_peaks, and with all counters in memory_marks.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id            BIGINT  devices.id.
-- @column device_index         BIGINT  Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column trace_index          BIGINT  Position of the slice's last event in the device's history.
-- @column time_us              BIGINT  Latest time in the slice, in microseconds since the Unix epoch; NULL without
--   a clock.
-- @column reserved             BIGINT  Bytes the allocator holds from the driver.
-- @column allocated            BIGINT  Bytes in allocated blocks, rounding included.
-- @column active               BIGINT  Bytes in allocated and pending-free blocks, rounding included.
-- @column allocated_requested  BIGINT  Bytes asked for in allocated blocks.
-- @column active_requested     BIGINT  Bytes asked for in allocated and pending-free blocks.
SELECT
  s.device_id AS device_id,
  d.device_index AS device_index,
  s.last_index AS trace_index,
  s.time_us AS time_us,
  s.reserved AS reserved,
  s.allocated AS allocated,
  s.active AS active,
  s.allocated_requested AS allocated_requested,
  s.active_requested AS active_requested
FROM _memory_slices AS s
JOIN devices AS d
  ON d.id = s.device_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index, s.last_index
