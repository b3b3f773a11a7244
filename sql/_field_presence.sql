-- Which fields the rows of a snapshot have: what a producer does not write is NULL in every row.
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
fields AS (
  SELECT
    1 AS position,
    'events' AS part,
    'stack_id' AS field,
    row_count,
    stack_id AS present_count
  FROM events
  UNION ALL
  SELECT
    2 AS position,
    'events' AS part,
    'time_us' AS field,
    row_count,
    time_us AS present_count
  FROM events
  UNION ALL
  SELECT
    3 AS position,
    'events' AS part,
    'pool_id_0' AS field,
    row_count,
    pool_id_0 AS present_count
  FROM events
  UNION ALL
  SELECT
    4 AS position,
    'events' AS part,
    'compile_context' AS field,
    row_count,
    compile_context AS present_count
  FROM events
  UNION ALL
  SELECT
    5 AS position,
    'events' AS part,
    'user_metadata' AS field,
    row_count,
    user_metadata AS present_count
  FROM events
  UNION ALL
  SELECT
    6 AS position,
    'segments' AS part,
    'requested_size' AS field,
    row_count,
    requested_size AS present_count
  FROM segment_fields
  UNION ALL
  SELECT
    7 AS position,
    'segments' AS part,
    'pool_id_0' AS field,
    row_count,
    pool_id_0 AS present_count
  FROM segment_fields
  UNION ALL
  SELECT
    8 AS position,
    'segments' AS part,
    'is_expandable' AS field,
    row_count,
    is_expandable AS present_count
  FROM segment_fields
  UNION ALL
  SELECT
    9 AS position,
    'blocks' AS part,
    'requested_size' AS field,
    row_count,
    requested_size AS present_count
  FROM block_fields
  UNION ALL
  SELECT
    10 AS position,
    'blocks' AS part,
    'stack_id' AS field,
    row_count,
    stack_id AS present_count
  FROM block_fields
  UNION ALL
  SELECT
    11 AS position,
    'snapshot' AS part,
    'allocator_settings' AS field,
    row_count,
    allocator_settings AS present_count
  FROM snapshot_fields
)
SELECT
  f.position AS position,
  f.part AS part,
  f.field AS field,
  f.row_count AS row_count,
  f.present_count AS present_count
FROM fields AS f
ORDER BY f.position
