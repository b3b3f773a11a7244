-- How much of every segment in the final state is not allocated, and why: what the relations on fragmentation share.
--
-- Segments of the workspace allocator are left out. Blocks that wait for a free and that the file shows as inactive
-- (_hidden_pending) count as what they are: pending, active, and no hole.
--
-- @kept
-- @column segment_id            BIGINT   segments.id.
-- @column device_id             BIGINT   devices.id.
-- @column device_index          BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column address               BIGINT   Start address.
-- @column total_size            BIGINT   Bytes reserved from the driver.
-- @column allocated_size        BIGINT   Bytes in blocks in state active_allocated.
-- @column pending_free_bytes    BIGINT   Bytes in blocks that were freed but wait for another stream.
-- @column pending_free_count    BIGINT   Those blocks.
-- @column free_bytes            BIGINT   Bytes in inactive blocks: holes.
-- @column hole_count            BIGINT   Inactive blocks.
-- @column largest_free_block    BIGINT   Bytes of the largest of them; 0 without one.
-- @column internal_waste_bytes  BIGINT   Bytes that rounding adds to active blocks: their size minus what was asked for;
--   NULL where a block does not say.
-- @column fragmentation_ratio   DOUBLE   (total_size - allocated_size) / total_size.
-- @column utilisation_ratio     DOUBLE   Bytes asked for in active blocks / total_size; NULL where a block does not say.
-- @column block_count           BIGINT   Blocks.
-- @column segment_type          VARCHAR  large or small.
-- @column stream                BIGINT   Stream that owns the segment; only its allocations can use the holes.
-- @column pool_id_0             BIGINT   First word of the memory pool's id.
-- @column pool_id_1             BIGINT   Second word.
-- @column is_private            BIGINT   1 in a pool other than (0, 0), such as a CUDA graph's; its holes serve that pool
--   only.
-- @column is_expandable         BIGINT   1 for an expandable segment, else 0.
-- @column is_unused             BIGINT   1 where no block is active.
-- @column stack_id              BIGINT   Call stack that made the segment grow: call_stacks.id; NULL where none was
--   recorded.
WITH block_sums AS (
  SELECT
    segment_id,
    COUNT(*) AS block_count,
    SUM(CASE WHEN state = 'active_allocated' THEN size ELSE 0 END) AS allocated_bytes,
    SUM(CASE WHEN state = 'active_pending_free' THEN size ELSE 0 END) AS pending_free_bytes,
    SUM(CASE WHEN state = 'active_pending_free' THEN 1 ELSE 0 END) AS pending_free_count,
    SUM(CASE WHEN state = 'inactive' THEN size ELSE 0 END) AS free_bytes,
    SUM(CASE WHEN state = 'inactive' THEN 1 ELSE 0 END) AS hole_count,
    SUM(CASE WHEN state = 'inactive' THEN 0 ELSE 1 END) AS active_count,
    MAX(CASE WHEN state = 'inactive' THEN size ELSE 0 END) AS largest_free_block,
    SUM(CASE WHEN state = 'inactive' THEN 0 ELSE size END) AS active_bytes,
    SUM(CASE WHEN state = 'inactive' THEN 0 ELSE requested_size END) AS requested_bytes,
    SUM(CASE WHEN state <> 'inactive' AND requested_size IS NULL THEN 1 ELSE 0 END)
      AS unknown_count
  FROM _actual_blocks
  GROUP BY segment_id
),
-- No block, no byte in it: the sums of such a segment are 0 and not unknown.
counters AS (
  SELECT
    s.segment_id AS segment_id,
    COALESCE(s.allocated_size, b.allocated_bytes, 0) AS allocated_size,
    COALESCE(b.pending_free_bytes, 0) AS pending_free_bytes,
    COALESCE(b.pending_free_count, 0) AS pending_free_count,
    COALESCE(b.free_bytes, 0) AS free_bytes,
    COALESCE(b.hole_count, 0) AS hole_count,
    COALESCE(b.largest_free_block, 0) AS largest_free_block,
    CASE WHEN COALESCE(b.unknown_count, 0) = 0 THEN COALESCE(b.requested_bytes, 0) END
      AS requested_bytes,
    COALESCE(b.active_bytes, 0) AS active_bytes,
    COALESCE(b.block_count, 0) AS block_count,
    CASE WHEN COALESCE(b.active_count, 0) = 0 THEN 1 ELSE 0 END AS is_unused
  FROM _pool_segments AS s
  LEFT JOIN block_sums AS b
    ON b.segment_id = s.segment_id
)
SELECT
  s.segment_id AS segment_id,
  s.device_id AS device_id,
  d.device_index AS device_index,
  s.address AS address,
  s.total_size AS total_size,
  c.allocated_size AS allocated_size,
  c.pending_free_bytes AS pending_free_bytes,
  c.pending_free_count AS pending_free_count,
  c.free_bytes AS free_bytes,
  c.hole_count AS hole_count,
  c.largest_free_block AS largest_free_block,
  c.active_bytes - c.requested_bytes AS internal_waste_bytes,
  CAST(s.total_size - c.allocated_size AS DOUBLE) / NULLIF(s.total_size, 0)
    AS fragmentation_ratio,
  CAST(c.requested_bytes AS DOUBLE) / NULLIF(s.total_size, 0) AS utilisation_ratio,
  c.block_count AS block_count,
  s.segment_type AS segment_type,
  s.stream AS stream,
  s.pool_id_0 AS pool_id_0,
  s.pool_id_1 AS pool_id_1,
  CASE WHEN s.pool_id_0 <> 0 OR s.pool_id_1 <> 0 THEN 1 ELSE 0 END AS is_private,
  COALESCE(s.is_expandable, 0) AS is_expandable,
  c.is_unused AS is_unused,
  s.stack_id AS stack_id
FROM _pool_segments AS s
JOIN counters AS c
  ON c.segment_id = s.segment_id
JOIN devices AS d
  ON d.id = s.device_id
