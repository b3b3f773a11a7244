-- What the rule of _scale lacks: how much more than that an event changed the rounded counters.
--
-- One row per event of an allocation whose block is not as large as the rule says: blocks that were not split, or sizes
-- that only the final state tells. These are few, so that joining them to millions of events is cheap. Events that the
-- trace lacks changed nothing, wherever the replay takes them to have been: what is there then is another event, or one
-- of another allocation, which has another size. Rows of one event add up.
--
-- @kept
-- @column device_id    BIGINT  devices.id.
-- @column trace_index  BIGINT  Position of the event in the device's history.
-- @column slice_index  BIGINT  Slice of events it lies in, from 0: see _scale.
-- @column stream       BIGINT  Stream of the allocation.
-- @column pool_id_0    BIGINT  First word of its memory pool's id; NULL where the events do not say it.
-- @column pool_id_1    BIGINT  Second word; NULL likewise.
-- @column is_small     BIGINT  1 where its request is of kind small: up to 1 MiB; else 0.
-- @column allocated    BIGINT  Bytes to add to the change of allocated.
-- @column active       BIGINT  Bytes to add to the change of active.
WITH other_sizes AS (
  SELECT
    device_id,
    stream,
    pool_id_0,
    pool_id_1,
    CASE WHEN rule_size <= 1048576 THEN 1 ELSE 0 END AS is_small,
    requested_size,
    alloc_index,
    free_requested_index,
    free_completed_index,
    block_size - rule_size AS excess
  FROM _sized_allocations
  WHERE block_size <> rule_size
),
kinds AS (
  SELECT 'alloc' AS kind
  UNION ALL
  SELECT 'free_requested' AS kind
  UNION ALL
  SELECT 'free_completed' AS kind
),
events AS (
  SELECT
    o.device_id AS device_id,
    o.stream AS stream,
    o.pool_id_0 AS pool_id_0,
    o.pool_id_1 AS pool_id_1,
    o.is_small AS is_small,
    k.kind AS kind,
    o.requested_size AS requested_size,
    CASE k.kind
      WHEN 'alloc' THEN o.alloc_index
      WHEN 'free_requested' THEN o.free_requested_index
      ELSE o.free_completed_index
    END AS trace_index,
    CASE k.kind WHEN 'alloc' THEN o.excess WHEN 'free_requested' THEN -o.excess ELSE 0 END
      AS allocated,
    CASE k.kind WHEN 'alloc' THEN o.excess WHEN 'free_completed' THEN -o.excess ELSE 0 END AS active
  FROM kinds AS k
  CROSS JOIN other_sizes AS o
)
SELECT
  e.device_id AS device_id,
  e.trace_index AS trace_index,
  e.trace_index / NULLIF((SELECT MAX(slice_width) FROM _scale), 0) AS slice_index,
  e.stream AS stream,
  e.pool_id_0 AS pool_id_0,
  e.pool_id_1 AS pool_id_1,
  e.is_small AS is_small,
  e.allocated AS allocated,
  e.active AS active
FROM events AS e
WHERE e.trace_index IS NOT NULL
  AND NOT EXISTS (
    SELECT 1
    FROM _event_rules AS r
    JOIN traces AS t
      ON t.device_id = r.device_id
    WHERE r.lacks_events = 1
      AND t.device_id = e.device_id
      AND t.trace_index = e.trace_index
      AND (
        t.size <> e.requested_size
        OR (
          t.action <> e.kind
          AND (
            r.frees_are_one = 0
            OR e.kind = 'alloc'
            OR t.action NOT IN ('free_requested', 'free_completed')
          )
        )
      )
  )
