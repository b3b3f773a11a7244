-- What the rule of _scale lacks: how much more than that an event changed the rounded counters.
--
-- One row per event of an allocation whose block is not as large as the rule says: blocks that were not split, or sizes
-- that only the final state tells. These are few, so that joining them to millions of events is cheap. An event is one of
-- one allocation; where one event stands for both the request and the completion of a free, it changes both counters.
--
-- @kept
-- @column device_id    BIGINT  devices.id.
-- @column trace_index  BIGINT  Position of the event in the device's history.
-- @column stream       BIGINT  Stream of the allocation.
-- @column is_small     BIGINT  1 for requests of up to 1 MiB, else 0.
-- @column allocated    BIGINT  Bytes to add to the change of allocated.
-- @column active       BIGINT  Bytes to add to the change of active.
WITH other_sizes AS (
  SELECT
    device_id,
    stream,
    is_small,
    alloc_index,
    free_requested_index,
    free_completed_index,
    block_size - rule_size AS excess
  FROM _sized_allocations
  WHERE block_size <> rule_size
),
kinds AS (
  SELECT 1 AS kind
  UNION ALL
  SELECT 2 AS kind
  UNION ALL
  SELECT 3 AS kind
),
events AS (
  SELECT
    o.device_id AS device_id,
    CASE k.kind
      WHEN 1 THEN o.alloc_index
      WHEN 2 THEN o.free_requested_index
      ELSE o.free_completed_index
    END AS trace_index,
    o.stream AS stream,
    o.is_small AS is_small,
    CASE k.kind WHEN 1 THEN o.excess WHEN 2 THEN -o.excess ELSE 0 END AS allocated,
    CASE
      WHEN k.kind = 1 THEN o.excess
      WHEN k.kind = 3 OR o.free_requested_index = o.free_completed_index THEN -o.excess
      ELSE 0
    END AS active
  FROM kinds AS k
  CROSS JOIN other_sizes AS o
  WHERE k.kind < 3
    OR o.free_requested_index IS NULL
    OR o.free_completed_index <> o.free_requested_index
)
SELECT
  device_id,
  trace_index,
  stream,
  is_small,
  allocated,
  active
FROM events
WHERE trace_index IS NOT NULL
