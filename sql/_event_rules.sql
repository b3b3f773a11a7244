-- Which events of each device count, and for what, as the replay found out; one row per device.
--
-- Where one of the two free events was never recorded the other stands for both. Where the dump was of one memory pool,
-- which all its segments are in then, the events of others are not its own.
--
-- @kept
-- @column device_id      BIGINT  devices.id.
-- @column frees_are_one  BIGINT  1 where the one free event that was recorded stands for both; else 0.
-- @column only_pool_0    BIGINT  First word of the id of the one memory pool dumped; NULL where all were.
-- @column only_pool_1    BIGINT  Second word; NULL likewise.
WITH findings AS (
  SELECT
    device_id,
    MAX(CASE WHEN name = 'frees_are_one' THEN 1 ELSE 0 END) AS frees_are_one,
    MAX(CASE WHEN name = 'events_of_other_pools' THEN 1 ELSE 0 END) AS is_of_one_pool
  FROM import_stats
  WHERE name IN ('frees_are_one', 'events_of_other_pools')
  GROUP BY device_id
),
pool_seen AS (
  SELECT
    MAX(s.pool_id_0) AS pool_id_0,
    MAX(s.pool_id_1) AS pool_id_1
  FROM devices AS d
  JOIN segments AS s
    ON s.device_id = d.id
  WHERE d.device_index >= 0
)
SELECT
  d.id AS device_id,
  COALESCE(f.frees_are_one, 0) AS frees_are_one,
  CASE WHEN f.is_of_one_pool = 1 THEN p.pool_id_0 END AS only_pool_0,
  CASE WHEN f.is_of_one_pool = 1 THEN p.pool_id_1 END AS only_pool_1
FROM pool_seen AS p
CROSS JOIN devices AS d
LEFT JOIN findings AS f
  ON f.device_id = d.id
