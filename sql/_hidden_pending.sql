-- Blocks that wait for a pending free although the snapshot shows them as inactive.
--
-- `torch_npu` shows them so where a free is put off to the end of a graph's capture. What tells is that free neighbours
-- are always merged: an inactive block beside another one, for which the events have a free that was requested and never
-- completed, is still active. The replay counts them as active in the final state; tables and counts by state have them
-- as the file says. Most snapshots have none.
--
-- @kept
-- @column block_id        BIGINT  blocks.id.
-- @column segment_id      BIGINT  segments.id.
-- @column device_id       BIGINT  devices.id.
-- @column size            BIGINT  Bytes, rounding included.
-- @column requested_size  BIGINT  Bytes asked for.
WITH sides AS (
  SELECT 1 AS side
  UNION ALL
  SELECT -1 AS side
),
pending AS (
  SELECT DISTINCT
    a.device_id AS device_id,
    a.addr AS addr,
    a.size AS requested_size
  FROM import_stats AS i
  JOIN allocations AS a
    ON a.device_id = i.device_id
  WHERE i.name = 'pending_shown_inactive'
    AND a.fate = 'pending_free'
    AND a.free_requested_index IS NOT NULL
),
candidates AS (
  SELECT
    b.block_id AS block_id,
    b.segment_id AS segment_id,
    b.device_id AS device_id,
    b.size AS size,
    p.requested_size AS requested_size
  FROM pending AS p
  JOIN _pool_blocks AS b
    ON b.device_id = p.device_id
    AND b.address = p.addr
  JOIN blocks AS t
    ON t.id = b.block_id
  WHERE b.state = 'inactive'
    AND t.requested_size = p.requested_size
),
-- A relation of its own, so that each key below is of two relations: with the sum written there,
-- DataFusion joins by segment alone and compares a candidate with all inactive blocks in it.
beside AS (
  SELECT
    c.block_id AS block_id,
    c.segment_id AS segment_id,
    c.device_id AS device_id,
    c.size AS size,
    c.requested_size AS requested_size,
    c.block_id + s.side AS neighbour_id
  FROM candidates AS c
  CROSS JOIN sides AS s
)
SELECT DISTINCT
  c.block_id AS block_id,
  c.segment_id AS segment_id,
  c.device_id AS device_id,
  c.size AS size,
  c.requested_size AS requested_size
FROM beside AS c
JOIN _pool_blocks AS n
  ON n.segment_id = c.segment_id
  AND n.block_id = c.neighbour_id
WHERE n.state = 'inactive'
