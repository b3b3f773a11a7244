-- Which events count, and for what, on devices where the replay found that they do not all count as they stand.
--
-- Where one of the two free events was never recorded, the other stands for both. Where the dump was of one memory pool,
-- which all its segments are in then, the events of others are not its own. Where events are missing, indices of
-- allocations can be those of other events. Most recordings have no such device, and so no row.
--
-- @kept
-- @column device_id      BIGINT  devices.id.
-- @column frees_are_one  BIGINT  1 where the one free event that was recorded stands for both; else 0.
-- @column lacks_events   BIGINT  1 where the replay took allocs or frees for granted that the trace lacks; else 0.
-- @column only_pool_0    BIGINT  First word of the id of the one memory pool dumped; NULL where all were.
-- @column only_pool_1    BIGINT  Second word; NULL likewise.
SELECT
  i.device_id AS device_id,
  MAX(CASE WHEN i.name = 'frees_are_one' THEN 1 ELSE 0 END) AS frees_are_one,
  MAX(CASE WHEN i.name IN ('frees_are_one', 'events_of_other_pools') THEN 0 ELSE 1 END)
    AS lacks_events,
  MAX(s.pool_id_0) AS only_pool_0,
  MAX(s.pool_id_1) AS only_pool_1
FROM import_stats AS i
LEFT JOIN segments AS s
  ON i.name = 'events_of_other_pools'
WHERE i.device_id IS NOT NULL
  AND i.name IN (
    'frees_are_one',
    'events_of_other_pools',
    'allocations_without_end',
    'frees_without_completion',
    'completions_without_request',
    'frees_without_alloc',
    'blocks_without_alloc'
  )
GROUP BY i.device_id
