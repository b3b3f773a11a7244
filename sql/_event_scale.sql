-- How the events of each device are measured, one row per device.
--
-- A block has `(size + padding + 511) / 512 * 512` bytes, unless _rounding_excess has a row for its events. A slice is
-- a run of slice_width events: sums over slices stand in for the events where a query wants a view of the whole
-- history. There are 20,000 slices at most, however long the history.
--
-- What the replay found out decides which events count: where one of the two free events was never recorded the other
-- stands for both, and where the dump was of one memory pool the events of others are not its own.
--
-- @kept
-- @column device_id      BIGINT  devices.id.
-- @column padding        BIGINT  As in _scale.
-- @column frees_are_one  BIGINT  1 where the one free event that was recorded stands for both; else 0.
-- @column only_pool_0    BIGINT  First word of the id of the one memory pool dumped; NULL where all were.
-- @column only_pool_1    BIGINT  Second word; NULL likewise.
-- @column slice_width    BIGINT  As in _scale.
-- @column first_index    BIGINT  trace_index of the first event; NULL without events.
-- @column last_index     BIGINT  trace_index of the last event; NULL without events.
WITH findings AS (
  SELECT
    device_id,
    MAX(CASE WHEN name = 'frees_are_one' THEN 1 ELSE 0 END) AS frees_are_one,
    MAX(CASE WHEN name = 'events_of_other_pools' THEN 1 ELSE 0 END) AS is_of_one_pool
  FROM import_stats
  WHERE name IN ('frees_are_one', 'events_of_other_pools')
  GROUP BY device_id
),
-- Where the dump was of one pool, all segments are in it.
pool_seen AS (
  SELECT
    MAX(s.pool_id_0) AS pool_id_0,
    MAX(s.pool_id_1) AS pool_id_1
  FROM devices AS d
  JOIN segments AS s
    ON s.device_id = d.id
  WHERE d.device_index >= 0
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
  COALESCE(f.frees_are_one, 0) AS frees_are_one,
  CASE WHEN f.is_of_one_pool = 1 THEN p.pool_id_0 END AS only_pool_0,
  CASE WHEN f.is_of_one_pool = 1 THEN p.pool_id_1 END AS only_pool_1,
  s.slice_width AS slice_width,
  w.first_index AS first_index,
  w.last_index AS last_index
FROM _scale AS s
CROSS JOIN pool_seen AS p
CROSS JOIN devices AS d
LEFT JOIN findings AS f
  ON f.device_id = d.id
LEFT JOIN windows AS w
  ON w.device_id = d.id
