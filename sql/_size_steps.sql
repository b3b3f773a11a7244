-- How requests are rounded where allocator_settings has roundup_power2_divisions: one row per range of sizes.
--
-- A request inside of a range becomes a multiple of step_bytes; all others become multiples of 512. Between two powers of
-- two there are as many steps as the setting says for the lower one. From 32 GiB on the entry of 32 GiB holds, below 1 MiB
-- that of 1 MiB; requests of up to 512 times the steps are left out, and one step is none. Settings are written as JSON by
-- the import alone, so that their text has one form. Most snapshots have no such setting, and so no row.
--
-- @kept
-- @column above_size  BIGINT  The range is of sizes above this.
-- @column below_size  BIGINT  And below this.
-- @column step_bytes  BIGINT  Bytes of a step.
WITH quarters AS (
  SELECT 0 AS part
  UNION ALL
  SELECT 1 AS part
  UNION ALL
  SELECT 2 AS part
  UNION ALL
  SELECT 3 AS part
),
numbers AS (
  SELECT a.part * 16 + b.part * 4 + c.part AS power
  FROM quarters AS a
  CROSS JOIN quarters AS b
  CROSS JOIN quarters AS c
),
powers AS (
  SELECT
    power,
    1 << power AS bytes
  FROM numbers
  WHERE power <= 60
),
settings AS (
  SELECT
    REPLACE(
      SUBSTR(
        allocator_settings,
        INSTR(allocator_settings, '"roundup_power2_divisions": {') + 29
      ),
      ' ',
      ''
    ) AS entries
  FROM snapshot
  WHERE INSTR(allocator_settings, '"roundup_power2_divisions": {') > 0
),
-- As `,"1":4,"2":8,`, so that each entry stands between commas.
lists AS (
  SELECT ',' || SUBSTR(entries, 1, INSTR(entries, '}') - 1) || ',' AS entries
  FROM settings
),
divisions AS (
  SELECT
    m.power AS mib_power,
    s.bytes AS steps
  FROM lists AS l
  CROSS JOIN powers AS m
  CROSS JOIN powers AS s
  WHERE m.power <= 15
    AND s.power BETWEEN 1 AND 40
    AND INSTR(
      l.entries,
      ',"' || CAST(m.bytes AS VARCHAR) || '":' || CAST(s.bytes AS VARCHAR) || ','
    ) > 0
)
SELECT
  CASE WHEN p.bytes > d.steps * 512 THEN p.bytes ELSE d.steps * 512 END AS above_size,
  p.bytes * 2 AS below_size,
  p.bytes / NULLIF(d.steps, 0) AS step_bytes
FROM divisions AS d
JOIN powers AS p
  ON d.mib_power = CASE
    WHEN p.power < 20 THEN 0
    WHEN p.power > 35 THEN 15
    ELSE p.power - 20
  END
WHERE p.power >= 9
  AND d.steps * 512 < p.bytes * 2
