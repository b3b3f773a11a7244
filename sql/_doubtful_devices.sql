-- Devices on which curves and blocks need not agree, one row each: events are missing, or stand in the wrong order.
--
-- @kept
-- @column device_id  BIGINT  devices.id.
SELECT device_id
FROM replay_checks
WHERE counter <> 'reserved'
  AND residual <> 0
UNION
SELECT device_id
FROM _event_rules
WHERE lacks_events = 1
UNION
SELECT device_id
FROM import_stats
WHERE name = 'events_out_of_order'
  AND device_id IS NOT NULL
