-- Counters of every device in two snapshots, side by side: at the end and at their peaks, a row per device and counter.
--
-- A peak is that of the recorded window, each counter's own; segment_count and block_count have none, and a device of
-- which no event was recorded has none that is known.
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
-- @column peak          BIGINT   The most it was in this snapshot; NULL where that is not known.
-- @column base_peak     BIGINT   The most it was in `base`; NULL likewise.
-- @column peak_change   BIGINT   peak - base_peak; NULL where either is.
-- @column peak_index    BIGINT   trace_index of the event that reached the peak; -1 where the window began with it.
-- @column base_index    BIGINT   The same in `base`.
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
peaks AS (
  SELECT
    1 AS is_own,
    device_index,
    counter,
    peak,
    trace_index
  FROM memory_peaks
  UNION ALL
  SELECT
    0 AS is_own,
    device_index,
    counter,
    peak,
    trace_index
  FROM base.memory_peaks
),
paired_peaks AS (
  SELECT
    device_index,
    counter,
    MAX(CASE WHEN is_own = 1 THEN peak END) AS peak,
    MAX(CASE WHEN is_own = 0 THEN peak END) AS base_peak,
    MAX(CASE WHEN is_own = 1 THEN trace_index END) AS peak_index,
    MAX(CASE WHEN is_own = 0 THEN trace_index END) AS base_index
  FROM peaks
  GROUP BY device_index, counter
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
  c.device_index AS device_index,
  c.counter AS counter,
  c.value AS value,
  c.base_value AS base_value,
  c.value - c.base_value AS change,
  p.peak AS peak,
  p.base_peak AS base_peak,
  p.peak - p.base_peak AS peak_change,
  p.peak_index AS peak_index,
  p.base_index AS base_index
FROM paired AS c
LEFT JOIN paired_peaks AS p
  ON p.device_index = c.device_index
  AND p.counter = c.counter
ORDER BY c.device_index, c.position
