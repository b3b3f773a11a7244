-- What an event of each kind adds to the five counters, one row per device and kind that changes any.
--
-- A sign says whether the event's bytes come (1), go (-1) or stay (0). Where one of the two free events was never recorded,
-- the other counts for both.
--
-- @kept
-- @column device_id       BIGINT   devices.id.
-- @column action          VARCHAR  What happened.
-- @column reserved_sign   BIGINT   For what the allocator holds from the driver.
-- @column allocated_sign  BIGINT   For allocated blocks.
-- @column active_sign     BIGINT   For allocated and pending-free blocks.
-- @column only_pool_0     BIGINT   As in _event_rules.
-- @column only_pool_1     BIGINT   As in _event_rules.
WITH kinds AS (
  SELECT 'alloc' AS action, 0 AS reserved_sign, 1 AS allocated_sign, 1 AS active_sign
  UNION ALL
  SELECT 'free_requested' AS action, 0 AS reserved_sign, -1 AS allocated_sign, 0 AS active_sign
  UNION ALL
  SELECT 'free_completed' AS action, 0 AS reserved_sign, 0 AS allocated_sign, -1 AS active_sign
  UNION ALL
  SELECT 'segment_alloc' AS action, 1 AS reserved_sign, 0 AS allocated_sign, 0 AS active_sign
  UNION ALL
  SELECT 'segment_map' AS action, 1 AS reserved_sign, 0 AS allocated_sign, 0 AS active_sign
  UNION ALL
  SELECT 'segment_free' AS action, -1 AS reserved_sign, 0 AS allocated_sign, 0 AS active_sign
  UNION ALL
  SELECT 'segment_unmap' AS action, -1 AS reserved_sign, 0 AS allocated_sign, 0 AS active_sign
)
SELECT
  d.id AS device_id,
  k.action AS action,
  k.reserved_sign AS reserved_sign,
  CASE WHEN r.frees_are_one = 1 AND k.action = 'free_completed' THEN -1 ELSE k.allocated_sign END
    AS allocated_sign,
  CASE WHEN r.frees_are_one = 1 AND k.action = 'free_requested' THEN -1 ELSE k.active_sign END
    AS active_sign,
  r.only_pool_0 AS only_pool_0,
  r.only_pool_1 AS only_pool_1
FROM kinds AS k
CROSS JOIN devices AS d
LEFT JOIN _event_rules AS r
  ON r.device_id = d.id
