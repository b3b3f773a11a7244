-- How requests are rounded where allocator_settings has roundup_power2_divisions: one row per range of sizes.
--
-- A request inside of a range becomes a multiple of step_bytes; all others become multiples of 512. Between two powers of
-- two there are as many steps as the setting says for the lower one. From 32 GiB on the entry of 32 GiB holds, below 1 MiB
-- that of 1 MiB; requests of up to 512 times the steps are left out, and one step is none. Most snapshots have no such
-- setting, and so no row.
--
-- What a user gives (`4`, or `[256:1,512:2,>:8]`) stands in PYTORCH_CUDA_ALLOC_CONF and is not read: the key
-- roundup_power2_divisions has what the allocator made of it, the steps of each of its 16 intervals, all of them 0 or
-- powers of two. They stand under the MiB that an interval begins with, or in the order of the intervals. The import
-- writes the settings as JSON, so that their text has one form.
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
        INSTR(allocator_settings, '"roundup_power2_divisions": ') + 28
      ),
      ' ',
      ''
    ) AS entries
  FROM snapshot
  WHERE INSTR(allocator_settings, '"roundup_power2_divisions": ') > 0
),
-- As `,"1":4,"2":8,`, or `,4,8,`, so that each entry stands between commas.
lists AS (
  SELECT
    SUBSTR(entries, 1, 1) AS bracket,
    ',' || SUBSTR(
      entries,
      2,
      INSTR(entries, CASE SUBSTR(entries, 1, 1) WHEN '{' THEN '}' ELSE ']' END) - 2
    ) || ',' AS entries
  FROM settings
  WHERE SUBSTR(entries, 1, 1) IN ('{', '[')
),
-- Where the entries of a list begin: 16 numbers have less than 512 characters.
commas AS (
  SELECT
    l.entries AS entries,
    a.power * 8 + b.power AS place
  FROM lists AS l
  CROSS JOIN numbers AS a
  CROSS JOIN numbers AS b
  WHERE l.bracket = '['
    AND b.power < 8
    AND SUBSTR(l.entries, a.power * 8 + b.power, 1) = ','
),
ordered AS (
  SELECT
    SUBSTR(entries, place) AS entries,
    ROW_NUMBER() OVER (
      ORDER BY place
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) - 1 AS mib_power
  FROM commas
),
divisions AS (
  SELECT
    m.power AS mib_power,
    s.bytes AS steps
  FROM lists AS l
  CROSS JOIN powers AS m
  CROSS JOIN powers AS s
  WHERE l.bracket = '{'
    AND m.power <= 15
    AND s.power BETWEEN 1 AND 40
    AND INSTR(
      l.entries,
      ',"' || CAST(m.bytes AS VARCHAR) || '":' || CAST(s.bytes AS VARCHAR) || ','
    ) > 0
  UNION ALL
  SELECT
    o.mib_power AS mib_power,
    s.bytes AS steps
  FROM ordered AS o
  CROSS JOIN powers AS s
  WHERE o.mib_power <= 15
    AND s.power BETWEEN 1 AND 40
    AND INSTR(o.entries, ',' || CAST(s.bytes AS VARCHAR) || ',') = 1
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
