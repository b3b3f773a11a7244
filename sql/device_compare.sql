-- Counters of every device in two snapshots, side by side: the final state, one row per device and counter.
--
-- @needs base
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_index  BIGINT   Device, as the snapshots number it; -1 is pinned host memory.
-- @column counter       VARCHAR  reserved, allocated, active, allocated_requested, active_requested: bytes;
--   segment_count, block_count: how many.
-- @column value         BIGINT   In this snapshot; NULL where it has no such device or does not say.
-- @column base_value    BIGINT   In the snapshot attached as `base`; NULL likewise.
-- @column change        BIGINT   value - base_value; NULL where either is.
WITH names AS (
  SELECT 1 AS position, 'reserved' AS counter
  UNION ALL
  SELECT 2 AS position, 'allocated' AS counter
  UNION ALL
  SELECT 3 AS position, 'active' AS counter
  UNION ALL
  SELECT 4 AS position, 'allocated_requested' AS counter
  UNION ALL
  SELECT 5 AS position, 'active_requested' AS counter
  UNION ALL
  SELECT 6 AS position, 'segment_count' AS counter
  UNION ALL
  SELECT 7 AS position, 'block_count' AS counter
),
both_sides AS (
  SELECT
    1 AS is_own,
    device_index,
    reserved,
    allocated,
    active,
    allocated_requested,
    active_requested,
    segment_count,
    block_count
  FROM device_overview
  WHERE ($device IS NULL OR device_index = $device)
  UNION ALL
  SELECT
    0 AS is_own,
    device_index,
    reserved,
    allocated,
    active,
    allocated_requested,
    active_requested,
    segment_count,
    block_count
  FROM base.device_overview
  WHERE ($device IS NULL OR device_index = $device)
),
counters AS (
  SELECT
    b.is_own AS is_own,
    b.device_index AS device_index,
    n.position AS position,
    n.counter AS counter,
    CASE n.counter
      WHEN 'reserved' THEN b.reserved
      WHEN 'allocated' THEN b.allocated
      WHEN 'active' THEN b.active
      WHEN 'allocated_requested' THEN b.allocated_requested
      WHEN 'active_requested' THEN b.active_requested
      WHEN 'segment_count' THEN b.segment_count
      ELSE b.block_count
    END AS value
  FROM both_sides AS b
  CROSS JOIN names AS n
),
paired AS (
  SELECT
    device_index,
    position,
    counter,
    MAX(CASE WHEN is_own = 1 THEN value END) AS value,
    MAX(CASE WHEN is_own = 0 THEN value END) AS base_value
  FROM counters
  GROUP BY device_index, position, counter
)
SELECT
  device_index,
  counter,
  value,
  base_value,
  value - base_value AS change
FROM paired
ORDER BY device_index, position
