-- How two snapshots were made, side by side: one row per fact.
--
-- @needs base
--
-- @column name        VARCHAR  producer, dialect, form, source_name, event_count, or allocator_settings: the settings as
--   one JSON object.
-- @column value       VARCHAR  The value in this snapshot; NULL where it does not say.
-- @column base_value  VARCHAR  The value in the snapshot attached as `base`; NULL likewise.
-- @column is_same     BIGINT   1 where both are the same.
WITH names AS (
  SELECT 1 AS position, 'source_name' AS name
  UNION ALL
  SELECT 2 AS position, 'producer' AS name
  UNION ALL
  SELECT 3 AS position, 'dialect' AS name
  UNION ALL
  SELECT 4 AS position, 'form' AS name
  UNION ALL
  SELECT 5 AS position, 'event_count' AS name
  UNION ALL
  SELECT 6 AS position, 'allocator_settings' AS name
),
facts AS (
  SELECT
    n.position AS position,
    n.name AS name,
    CASE n.name
      WHEN 'source_name' THEN a.source_name
      WHEN 'producer' THEN a.producer
      WHEN 'dialect' THEN a.dialect
      WHEN 'form' THEN a.form
      WHEN 'event_count' THEN CAST(a.event_count AS VARCHAR)
      ELSE a.allocator_settings
    END AS value,
    CASE n.name
      WHEN 'source_name' THEN b.source_name
      WHEN 'producer' THEN b.producer
      WHEN 'dialect' THEN b.dialect
      WHEN 'form' THEN b.form
      WHEN 'event_count' THEN CAST(b.event_count AS VARCHAR)
      ELSE b.allocator_settings
    END AS base_value
  FROM names AS n
  CROSS JOIN snapshot AS a
  CROSS JOIN base.snapshot AS b
)
SELECT
  name,
  value,
  base_value,
  CASE WHEN value = base_value OR (value IS NULL AND base_value IS NULL) THEN 1 ELSE 0 END
    AS is_same
FROM facts
ORDER BY position
