-- How many rows of a snapshot have a field: what a producer does not write is NULL in every row.
--
-- Events are rows of traces without the workspace entries, which describe the moment of the dump. Blocks are those in
-- use: nothing is known of the others in any snapshot.
--
-- @column position       BIGINT   Place in the order.
-- @column part           VARCHAR  events, segments, blocks or snapshot.
-- @column field          VARCHAR  Column of the part's table.
-- @column row_count      BIGINT   Rows of the part.
-- @column present_count  BIGINT   Of them, rows that have the field.
WITH events AS (
  SELECT
    COUNT(*) AS row_count,
    COUNT(stack_id) AS stack_id,
    COUNT(time_us) AS time_us,
    COUNT(pool_id_0) AS pool_id_0,
    COUNT(compile_context) AS compile_context,
    COUNT(user_metadata) AS user_metadata
  FROM traces
  WHERE is_workspace = 0
),
segment_fields AS (
  SELECT
    COUNT(*) AS row_count,
    COUNT(requested_size) AS requested_size,
    COUNT(pool_id_0) AS pool_id_0,
    COUNT(is_expandable) AS is_expandable
  FROM segments
),
block_fields AS (
  SELECT
    COUNT(*) AS row_count,
    COUNT(requested_size) AS requested_size,
    COUNT(stack_id) AS stack_id
  FROM blocks
  WHERE state IN ('active_allocated', 'active_pending_free')
),
snapshot_fields AS (
  SELECT
    COUNT(*) AS row_count,
    COUNT(allocator_settings) AS allocator_settings
  FROM snapshot
),
-- Names and counts are joined, and not a UNION of counts: DataFusion would push a filter on a
-- constant below a COUNT, which still gives a row then, with 0 in it.
names AS (
  SELECT
    1 AS position,
    'events' AS part,
    'stack_id' AS field
  UNION ALL
  SELECT
    2 AS position,
    'events' AS part,
    'time_us' AS field
  UNION ALL
  SELECT
    3 AS position,
    'events' AS part,
    'pool_id_0' AS field
  UNION ALL
  SELECT
    4 AS position,
    'events' AS part,
    'compile_context' AS field
  UNION ALL
  SELECT
    5 AS position,
    'events' AS part,
    'user_metadata' AS field
  UNION ALL
  SELECT
    6 AS position,
    'segments' AS part,
    'requested_size' AS field
  UNION ALL
  SELECT
    7 AS position,
    'segments' AS part,
    'pool_id_0' AS field
  UNION ALL
  SELECT
    8 AS position,
    'segments' AS part,
    'is_expandable' AS field
  UNION ALL
  SELECT
    9 AS position,
    'blocks' AS part,
    'requested_size' AS field
  UNION ALL
  SELECT
    10 AS position,
    'blocks' AS part,
    'stack_id' AS field
  UNION ALL
  SELECT
    11 AS position,
    'snapshot' AS part,
    'allocator_settings' AS field
)
SELECT
  n.position AS position,
  n.part AS part,
  n.field AS field,
  CASE n.part
    WHEN 'events' THEN e.row_count
    WHEN 'segments' THEN s.row_count
    WHEN 'blocks' THEN b.row_count
    WHEN 'snapshot' THEN t.row_count
  END AS row_count,
  CASE n.position
    WHEN 1 THEN e.stack_id
    WHEN 2 THEN e.time_us
    WHEN 3 THEN e.pool_id_0
    WHEN 4 THEN e.compile_context
    WHEN 5 THEN e.user_metadata
    WHEN 6 THEN s.requested_size
    WHEN 7 THEN s.pool_id_0
    WHEN 8 THEN s.is_expandable
    WHEN 9 THEN b.requested_size
    WHEN 10 THEN b.stack_id
    WHEN 11 THEN t.allocator_settings
  END AS present_count
FROM names AS n
CROSS JOIN events AS e
CROSS JOIN segment_fields AS s
CROSS JOIN block_fields AS b
CROSS JOIN snapshot_fields AS t
ORDER BY n.position
