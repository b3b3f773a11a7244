-- The allocator setting max_split_size: one row where blocks of a size and more are not split, none where all are.
--
-- Settings are written as JSON by the import alone, so that their text has one form. No limit is written as -1; what is
-- no number of bytes is none either.
--
-- @column max_split_size  BIGINT  Bytes from which on a block is not split.
WITH texts AS (
  SELECT
    REPLACE(
      SUBSTR(allocator_settings, INSTR(allocator_settings, '"max_split_size": ') + 18),
      '}',
      ','
    ) AS entries
  FROM snapshot
  WHERE INSTR(allocator_settings, '"max_split_size": ') > 0
),
numbers AS (
  SELECT SUBSTR(entries, 1, INSTR(entries, ',') - 1) AS digits
  FROM texts
),
limits AS (
  SELECT
    CASE
      WHEN LENGTH(digits) BETWEEN 1 AND 18 AND LTRIM(digits, '0123456789') = ''
      THEN CAST(digits AS BIGINT)
    END AS max_split_size
  FROM numbers
)
SELECT max_split_size
FROM limits
WHERE max_split_size > 0
