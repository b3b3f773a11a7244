-- The courses of two snapshots on one axis: how far each recording had come, in equal steps.
--
-- Two runs have no clock in common, and an NPU none at all, so the axis is the share of the recorded events. Within a
-- step each counter is the highest of the values that memory_curve has there, so that a peak is seen at every width.
--
-- @needs base
--
-- @param points  BIGINT = 400   Steps.
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_index      BIGINT  Device, as the snapshots number it; -1 is pinned host memory.
-- @column step              BIGINT  Number of the step, from 1.
-- @column position          DOUBLE  Share of the events at the end of the step: step / points.
-- @column trace_index       BIGINT  Last event of the step in this snapshot; NULL where it has none there.
-- @column reserved          BIGINT  Bytes held from the driver; NULL likewise.
-- @column allocated         BIGINT  Bytes in allocated blocks, rounding included; NULL likewise.
-- @column active            BIGINT  Bytes in allocated and pending-free blocks, rounding included; NULL likewise.
-- @column base_trace_index  BIGINT  Last event of the step in `base`; NULL where it has none there.
-- @column base_reserved     BIGINT  Bytes held from the driver in `base`; NULL likewise.
-- @column base_allocated    BIGINT  Bytes in allocated blocks in `base`; NULL likewise.
-- @column base_active       BIGINT  Bytes in allocated and pending-free blocks in `base`; NULL likewise.
WITH windows AS (
  SELECT
    d.device_index AS device_index,
    k.first_index AS first_index,
    k.last_index - k.first_index + 1 AS length
  FROM devices AS d
  JOIN _event_scale AS k
    ON k.device_id = d.id
),
base_windows AS (
  SELECT
    d.device_index AS device_index,
    k.first_index AS first_index,
    k.last_index - k.first_index + 1 AS length
  FROM base.devices AS d
  JOIN base._event_scale AS k
    ON k.device_id = d.id
),
both_sides AS (
  SELECT
    1 AS is_own,
    c.device_index AS device_index,
    (c.trace_index - w.first_index) * $points / NULLIF(w.length, 0) + 1 AS step,
    c.trace_index AS trace_index,
    c.reserved AS reserved,
    c.allocated AS allocated,
    c.active AS active
  FROM memory_curve AS c
  JOIN windows AS w
    ON w.device_index = c.device_index
  UNION ALL
  SELECT
    0 AS is_own,
    c.device_index AS device_index,
    (c.trace_index - w.first_index) * $points / NULLIF(w.length, 0) + 1 AS step,
    c.trace_index AS trace_index,
    c.reserved AS reserved,
    c.allocated AS allocated,
    c.active AS active
  FROM base.memory_curve AS c
  JOIN base_windows AS w
    ON w.device_index = c.device_index
),
steps AS (
  SELECT
    device_index,
    step,
    MAX(CASE WHEN is_own = 1 THEN trace_index END) AS trace_index,
    MAX(CASE WHEN is_own = 1 THEN reserved END) AS reserved,
    MAX(CASE WHEN is_own = 1 THEN allocated END) AS allocated,
    MAX(CASE WHEN is_own = 1 THEN active END) AS active,
    MAX(CASE WHEN is_own = 0 THEN trace_index END) AS base_trace_index,
    MAX(CASE WHEN is_own = 0 THEN reserved END) AS base_reserved,
    MAX(CASE WHEN is_own = 0 THEN allocated END) AS base_allocated,
    MAX(CASE WHEN is_own = 0 THEN active END) AS base_active
  FROM both_sides
  WHERE ($device IS NULL OR device_index = $device)
  GROUP BY device_index, step
)
SELECT
  device_index,
  step,
  CAST(step AS DOUBLE) / NULLIF($points, 0) AS position,
  trace_index,
  reserved,
  allocated,
  active,
  base_trace_index,
  base_reserved,
  base_allocated,
  base_active
FROM steps
ORDER BY device_index, step
