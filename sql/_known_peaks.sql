-- Devices whose peak is known: events were recorded, and lead to the final state.
--
-- @column device_id     BIGINT  devices.id.
-- @column device_index  BIGINT  Device, as the snapshot numbers it; -1 is pinned host memory.
SELECT
  d.id AS device_id,
  d.device_index AS device_index
FROM replay_checks AS c
JOIN _event_scale AS k
  ON k.device_id = c.device_id
JOIN devices AS d
  ON d.id = c.device_id
WHERE c.counter = 'allocated'
  AND c.base IS NOT NULL
  AND k.first_index IS NOT NULL
