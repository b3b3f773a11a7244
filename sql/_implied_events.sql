-- Indices of allocations that only follow from the events around them: the event there did not do that.
--
-- Where the trace lacks an alloc or a free, the replay fills in when it must have been. Such an event changed nothing by
-- itself. Listed for allocations whose block is not as large as the rule of _scale says, which is where it counts;
-- on devices whose events are whole there are none.
--
-- @kept
-- @column device_id    BIGINT   devices.id.
-- @column trace_index  BIGINT   The index in question.
-- @column kind         VARCHAR  alloc, free_requested or free_completed: what the event there did not do.
WITH gaps AS (
  SELECT
    k.device_id AS device_id,
    k.frees_are_one AS frees_are_one
  FROM import_stats AS i
  JOIN _event_scale AS k
    ON k.device_id = i.device_id
  WHERE i.name IN (
      'allocations_without_end',
      'frees_without_completion',
      'completions_without_request',
      'frees_without_alloc',
      'blocks_without_alloc'
    )
  GROUP BY k.device_id, k.frees_are_one
),
kinds AS (
  SELECT 'alloc' AS kind
  UNION ALL
  SELECT 'free_requested' AS kind
  UNION ALL
  SELECT 'free_completed' AS kind
),
indices AS (
  SELECT
    g.device_id AS device_id,
    g.frees_are_one AS frees_are_one,
    k.kind AS kind,
    CASE k.kind
      WHEN 'alloc' THEN a.alloc_index
      WHEN 'free_requested' THEN a.free_requested_index
      ELSE a.free_completed_index
    END AS trace_index
  FROM gaps AS g
  JOIN _sized_allocations AS a
    ON a.device_id = g.device_id
  CROSS JOIN kinds AS k
  WHERE a.block_size <> a.rule_size
)
SELECT
  i.device_id AS device_id,
  i.trace_index AS trace_index,
  i.kind AS kind
FROM indices AS i
JOIN traces AS t
  ON t.device_id = i.device_id
  AND t.trace_index = i.trace_index
WHERE t.action <> i.kind
  AND (
    i.frees_are_one = 0
    OR i.kind = 'alloc'
    OR t.action NOT IN ('free_requested', 'free_completed')
  )
GROUP BY i.device_id, i.trace_index, i.kind
