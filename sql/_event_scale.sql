-- How the events of each device are measured, and the window they lie in, one row per device.
--
-- @kept
-- @column device_id    BIGINT  devices.id.
-- @column padding      BIGINT  As in _scale.
-- @column slice_width  BIGINT  As in _scale.
-- @column first_index  BIGINT  trace_index of the first event; NULL without events.
-- @column last_index   BIGINT  trace_index of the last event; NULL without events.
WITH windows AS (
  SELECT
    device_id,
    MIN(trace_index) AS first_index,
    MAX(trace_index) AS last_index
  FROM traces
  WHERE is_workspace = 0
  GROUP BY device_id
)
SELECT
  d.id AS device_id,
  s.padding AS padding,
  s.slice_width AS slice_width,
  w.first_index AS first_index,
  w.last_index AS last_index
FROM _scale AS s
CROSS JOIN devices AS d
LEFT JOIN windows AS w
  ON w.device_id = d.id
