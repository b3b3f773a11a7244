-- Segments that differ between two snapshots: new ones, ones that are gone, expandable ones that grew or shrank.
--
-- An address means nothing in another process, so it is no identity: a segment of this snapshot is paired with one of
-- the same device, kind, sort of pool and size; expandable ones, which change their size, in the order of their sizes.
-- Where both snapshots have a segment at the same address, as two dumps of one process do, these are paired first.
--
-- @needs base
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column change           VARCHAR  new, gone, grown or shrunk.
-- @column device_index     BIGINT   Device, as the snapshots number it; -1 is pinned host memory.
-- @column segment_type     VARCHAR  large or small.
-- @column is_private       BIGINT   1 in a pool other than (0, 0).
-- @column is_expandable    BIGINT   1 for an expandable segment, else 0.
-- @column segment_id       BIGINT   segments.id; NULL where it is gone.
-- @column address          BIGINT   Start address; NULL likewise.
-- @column total_size       BIGINT   Bytes; NULL likewise.
-- @column base_segment_id  BIGINT   segments.id in `base`; NULL where it is new.
-- @column base_address     BIGINT   Start address in `base`; NULL likewise.
-- @column base_total_size  BIGINT   Bytes in `base`; NULL likewise.
-- @column size_change      BIGINT   Bytes in this snapshot minus bytes in `base`.
WITH both_sides AS (
  SELECT
    1 AS is_own,
    device_index,
    segment_type,
    is_private,
    is_expandable,
    CASE WHEN is_expandable = 1 THEN 0 ELSE total_size END AS fixed_size,
    segment_id,
    address,
    total_size
  FROM _segment_fragmentation
  WHERE ($device IS NULL OR device_index = $device)
  UNION ALL
  SELECT
    0 AS is_own,
    device_index,
    segment_type,
    is_private,
    is_expandable,
    CASE WHEN is_expandable = 1 THEN 0 ELSE total_size END AS fixed_size,
    segment_id,
    address,
    total_size
  FROM base._segment_fragmentation
  WHERE ($device IS NULL OR device_index = $device)
),
same_addresses AS (
  SELECT
    device_index,
    segment_type,
    is_private,
    is_expandable,
    fixed_size,
    address
  FROM both_sides
  GROUP BY device_index, segment_type, is_private, is_expandable, fixed_size, address
  HAVING MIN(is_own) < MAX(is_own)
),
numbered AS (
  SELECT
    s.is_own AS is_own,
    s.device_index AS device_index,
    s.segment_type AS segment_type,
    s.is_private AS is_private,
    s.is_expandable AS is_expandable,
    s.fixed_size AS fixed_size,
    s.segment_id AS segment_id,
    s.address AS address,
    s.total_size AS total_size,
    CAST(ROW_NUMBER() OVER (
      PARTITION BY
        s.is_own, s.device_index, s.segment_type, s.is_private, s.is_expandable, s.fixed_size
      ORDER BY
        t.address IS NULL, t.address, s.total_size DESC, s.address, s.segment_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS BIGINT) AS position
  FROM both_sides AS s
  LEFT JOIN same_addresses AS t
    ON t.device_index = s.device_index
    AND t.segment_type = s.segment_type
    AND t.is_private = s.is_private
    AND t.is_expandable = s.is_expandable
    AND t.fixed_size = s.fixed_size
    AND t.address = s.address
),
paired AS (
  SELECT
    device_index,
    segment_type,
    is_private,
    is_expandable,
    MAX(CASE WHEN is_own = 1 THEN segment_id END) AS segment_id,
    MAX(CASE WHEN is_own = 1 THEN address END) AS address,
    MAX(CASE WHEN is_own = 1 THEN total_size END) AS total_size,
    MAX(CASE WHEN is_own = 0 THEN segment_id END) AS base_segment_id,
    MAX(CASE WHEN is_own = 0 THEN address END) AS base_address,
    MAX(CASE WHEN is_own = 0 THEN total_size END) AS base_total_size
  FROM numbered
  GROUP BY device_index, segment_type, is_private, is_expandable, fixed_size, position
)
SELECT
  CASE
    WHEN base_segment_id IS NULL THEN 'new'
    WHEN segment_id IS NULL THEN 'gone'
    WHEN total_size > base_total_size THEN 'grown'
    ELSE 'shrunk'
  END AS change,
  device_index,
  segment_type,
  is_private,
  is_expandable,
  segment_id,
  address,
  total_size,
  base_segment_id,
  base_address,
  base_total_size,
  COALESCE(total_size, 0) - COALESCE(base_total_size, 0) AS size_change
FROM paired
WHERE segment_id IS NULL
  OR base_segment_id IS NULL
  OR total_size <> base_total_size
ORDER BY
  device_index,
  ABS(COALESCE(total_size, 0) - COALESCE(base_total_size, 0)) DESC,
  segment_id IS NULL,
  segment_id,
  base_segment_id
