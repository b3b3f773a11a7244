-- How many rows every table has, in the order of the tables.
--
-- @column position    BIGINT   Place in the order.
-- @column table_name  VARCHAR  The table.
-- @column row_count   BIGINT   Its rows.
WITH
-- Names and counts are joined, and not a UNION of counts: DataFusion would push a filter on a
-- constant below a COUNT, which still gives a row then, with 0 in it.
names AS (
  SELECT
    1 AS position,
    'devices' AS table_name
  UNION ALL
  SELECT
    2 AS position,
    'call_stacks' AS table_name
  UNION ALL
  SELECT
    3 AS position,
    'segments' AS table_name
  UNION ALL
  SELECT
    4 AS position,
    'blocks' AS table_name
  UNION ALL
  SELECT
    5 AS position,
    'traces' AS table_name
  UNION ALL
  SELECT
    6 AS position,
    'allocations' AS table_name
  UNION ALL
  SELECT
    7 AS position,
    'snapshot' AS table_name
  UNION ALL
  SELECT
    8 AS position,
    'annotations' AS table_name
  UNION ALL
  SELECT
    9 AS position,
    'import_stats' AS table_name
  UNION ALL
  SELECT
    10 AS position,
    'replay_checks' AS table_name
  UNION ALL
  SELECT
    11 AS position,
    'module_memory' AS table_name
),
counts AS (
  SELECT
    (SELECT COUNT(*) FROM devices) AS devices_count,
    (SELECT COUNT(*) FROM call_stacks) AS call_stacks_count,
    (SELECT COUNT(*) FROM segments) AS segments_count,
    (SELECT COUNT(*) FROM blocks) AS blocks_count,
    (SELECT COUNT(*) FROM traces) AS traces_count,
    (SELECT COUNT(*) FROM allocations) AS allocations_count,
    (SELECT COUNT(*) FROM snapshot) AS snapshot_count,
    (SELECT COUNT(*) FROM annotations) AS annotations_count,
    (SELECT COUNT(*) FROM import_stats) AS import_stats_count,
    (SELECT COUNT(*) FROM replay_checks) AS replay_checks_count,
    (SELECT COUNT(*) FROM module_memory) AS module_memory_count
)
SELECT
  n.position AS position,
  n.table_name AS table_name,
  CASE n.table_name
    WHEN 'devices' THEN c.devices_count
    WHEN 'call_stacks' THEN c.call_stacks_count
    WHEN 'segments' THEN c.segments_count
    WHEN 'blocks' THEN c.blocks_count
    WHEN 'traces' THEN c.traces_count
    WHEN 'allocations' THEN c.allocations_count
    WHEN 'snapshot' THEN c.snapshot_count
    WHEN 'annotations' THEN c.annotations_count
    WHEN 'import_stats' THEN c.import_stats_count
    WHEN 'replay_checks' THEN c.replay_checks_count
    WHEN 'module_memory' THEN c.module_memory_count
  END AS row_count
FROM names AS n
CROSS JOIN counts AS c
ORDER BY n.position
