-- Memory pools of every device in the final state: the default pool (0, 0), and private ones as CUDA graphs have them.
--
-- Memory that is free in a private pool serves its owner only; it is neither cache nor fragmentation of the default pool.
-- What is pending is told as in device_fragmentation.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id             BIGINT  devices.id.
-- @column device_index          BIGINT  Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column pool_id_0             BIGINT  First word of the pool's id; NULL where the producer does not write it.
-- @column pool_id_1             BIGINT  Second word.
-- @column is_private            BIGINT  1 for a pool other than (0, 0).
-- @column segment_count         BIGINT  Segments.
-- @column reserved              BIGINT  Bytes in them.
-- @column allocated             BIGINT  Bytes in blocks in state active_allocated.
-- @column pending_free_bytes    BIGINT  Bytes in blocks that were freed but wait for another stream.
-- @column hole_bytes            BIGINT  Bytes in inactive blocks of segments that are in use.
-- @column hole_count            BIGINT  Those blocks.
-- @column largest_free_block    BIGINT  Bytes of the largest inactive block; 0 without one.
-- @column unused_segment_bytes  BIGINT  Bytes in segments without an active block.
-- @column unused_segment_count  BIGINT  Those segments.
-- @column internal_waste_bytes  BIGINT  Bytes that rounding adds to active blocks; NULL where a block does not say.
-- @column fragmentation_ratio   DOUBLE  (reserved - allocated) / reserved.
WITH pools AS (
  SELECT
    device_id,
    pool_id_0,
    pool_id_1,
    MAX(is_private) AS is_private,
    COUNT(*) AS segment_count,
    SUM(total_size) AS reserved,
    SUM(allocated_size) AS allocated,
    SUM(pending_free_bytes) AS pending_free_bytes,
    SUM(CASE WHEN is_unused = 0 THEN free_bytes ELSE 0 END) AS hole_bytes,
    SUM(CASE WHEN is_unused = 0 THEN hole_count ELSE 0 END) AS hole_count,
    MAX(largest_free_block) AS largest_free_block,
    SUM(CASE WHEN is_unused = 1 THEN total_size ELSE 0 END) AS unused_segment_bytes,
    SUM(is_unused) AS unused_segment_count,
    CASE WHEN COUNT(internal_waste_bytes) = COUNT(*) THEN SUM(internal_waste_bytes) END
      AS internal_waste_bytes
  FROM _segment_fragmentation
  GROUP BY device_id, pool_id_0, pool_id_1
)
SELECT
  p.device_id AS device_id,
  d.device_index AS device_index,
  p.pool_id_0 AS pool_id_0,
  p.pool_id_1 AS pool_id_1,
  p.is_private AS is_private,
  p.segment_count AS segment_count,
  p.reserved AS reserved,
  p.allocated AS allocated,
  p.pending_free_bytes AS pending_free_bytes,
  p.hole_bytes AS hole_bytes,
  p.hole_count AS hole_count,
  p.largest_free_block AS largest_free_block,
  p.unused_segment_bytes AS unused_segment_bytes,
  p.unused_segment_count AS unused_segment_count,
  p.internal_waste_bytes AS internal_waste_bytes,
  CAST(p.reserved - p.allocated AS DOUBLE) / NULLIF(p.reserved, 0) AS fragmentation_ratio
FROM pools AS p
JOIN devices AS d
  ON d.id = p.device_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index, p.is_private, p.pool_id_0 IS NULL, p.pool_id_0, p.pool_id_1
