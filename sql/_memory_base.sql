-- The five counters just before the first event of each device, one row per device.
--
-- @kept
-- @column device_id            BIGINT  devices.id.
-- @column reserved             BIGINT  Bytes the allocator held from the driver.
-- @column allocated            BIGINT  Bytes in allocated blocks, rounding included.
-- @column active               BIGINT  Bytes in blocks that were allocated or waited for a pending free, rounding
--   included.
-- @column allocated_requested  BIGINT  Bytes asked for in allocated blocks.
-- @column active_requested     BIGINT  Bytes asked for in blocks that were allocated or waited for a pending free.
SELECT
  device_id,
  MAX(CASE WHEN counter = 'reserved' THEN base END) AS reserved,
  MAX(CASE WHEN counter = 'allocated' THEN base END) AS allocated,
  MAX(CASE WHEN counter = 'active' THEN base END) AS active,
  MAX(CASE WHEN counter = 'allocated_requested' THEN base END) AS allocated_requested,
  MAX(CASE WHEN counter = 'active_requested' THEN base END) AS active_requested
FROM replay_checks
GROUP BY device_id
