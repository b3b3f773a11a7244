-- How the events of each device are measured, one row per device.
--
-- A block has `(size + padding + 511) / 512 * 512` bytes, unless _rounding_excess has a row for its events. A slice is
-- a run of slice_width events: sums over slices stand in for the events where a query wants a view of the whole
-- history. There are 20,000 slices at most, however long the history.
--
-- @kept
-- @column device_id    BIGINT  devices.id.
-- @column padding      BIGINT  Bytes the allocator adds to a request before it rounds.
-- @column slice_width  BIGINT  Events of a slice.
-- @column first_index  BIGINT  trace_index of the first event; NULL without events.
-- @column last_index   BIGINT  trace_index of the last event; NULL without events.
WITH scale AS (
  SELECT
    COALESCE(MAX(block_padding), 0) AS padding,
    COALESCE(MAX(event_count), 0) / NULLIF(20000, 0) + 1 AS slice_width
  FROM snapshot
),
windows AS (
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
FROM scale AS s
CROSS JOIN devices AS d
LEFT JOIN windows AS w
  ON w.device_id = d.id
