-- The part of the base that the blocks alive before the window do not explain, one row per device.
--
-- It stays the same through the whole history, so that what lives at an event and this add up to the curve.
--
-- @kept
-- @column device_id       BIGINT  devices.id.
-- @column allocated_size  BIGINT  Bytes in allocated, rounding included.
-- @column requested_size  BIGINT  Bytes in allocated_requested.
-- @column pending_size    BIGINT  Bytes in active that are not in allocated, rounding included.
WITH by_device AS (
  SELECT
    device_id,
    COALESCE(MAX(CASE WHEN counter = 'allocated' THEN residual END), 0) AS allocated_size,
    COALESCE(MAX(CASE WHEN counter = 'allocated_requested' THEN residual END), 0)
      AS requested_size,
    COALESCE(MAX(CASE WHEN counter = 'active' THEN residual END), 0) AS active_size
  FROM replay_checks
  GROUP BY device_id
)
SELECT
  device_id,
  allocated_size,
  requested_size,
  active_size - allocated_size AS pending_size
FROM by_device
WHERE allocated_size <> 0
  OR requested_size <> 0
  OR active_size <> 0
