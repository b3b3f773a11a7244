-- How many rows every table has, in the order of the tables.
--
-- @column position    BIGINT   Place in the order.
-- @column table_name  VARCHAR  The table.
-- @column row_count   BIGINT   Its rows.
WITH counted AS (
  SELECT
    1 AS position,
    'devices' AS table_name,
    COUNT(*) AS row_count
  FROM devices
  UNION ALL
  SELECT
    2 AS position,
    'call_stacks' AS table_name,
    COUNT(*) AS row_count
  FROM call_stacks
  UNION ALL
  SELECT
    3 AS position,
    'segments' AS table_name,
    COUNT(*) AS row_count
  FROM segments
  UNION ALL
  SELECT
    4 AS position,
    'blocks' AS table_name,
    COUNT(*) AS row_count
  FROM blocks
  UNION ALL
  SELECT
    5 AS position,
    'traces' AS table_name,
    COUNT(*) AS row_count
  FROM traces
  UNION ALL
  SELECT
    6 AS position,
    'allocations' AS table_name,
    COUNT(*) AS row_count
  FROM allocations
  UNION ALL
  SELECT
    7 AS position,
    'snapshot' AS table_name,
    COUNT(*) AS row_count
  FROM snapshot
  UNION ALL
  SELECT
    8 AS position,
    'annotations' AS table_name,
    COUNT(*) AS row_count
  FROM annotations
  UNION ALL
  SELECT
    9 AS position,
    'import_stats' AS table_name,
    COUNT(*) AS row_count
  FROM import_stats
  UNION ALL
  SELECT
    10 AS position,
    'replay_checks' AS table_name,
    COUNT(*) AS row_count
  FROM replay_checks
)
SELECT
  c.position AS position,
  c.table_name AS table_name,
  c.row_count AS row_count
FROM counted AS c
ORDER BY c.position
