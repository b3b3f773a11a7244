-- Where the memory of every device is that is reserved but not allocated, one row per device.
--
-- Four parts that add up to reserved - allocated: pending_free_bytes waits for another stream, hole_bytes is free inside
-- segments of the default pool that are in use (fragmentation), unused_segment_bytes is whole free segments of the
-- default pool (cache), private_free_bytes is free in private pools, which serve their owner only. Blocks that an NPU
-- shows as inactive though they wait for a free that a graph's capture puts off count as pending here; device_overview
-- and block_state_dist have them by the state that the file says.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id              BIGINT  devices.id.
-- @column device_index           BIGINT  Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column reserved               BIGINT  Bytes in segments.
-- @column allocated              BIGINT  Bytes in blocks in state active_allocated.
-- @column fragmentation_ratio    DOUBLE  (reserved - allocated) / reserved; NULL where nothing is reserved.
-- @column pending_free_bytes     BIGINT  Bytes in blocks that were freed but wait for another stream.
-- @column pending_free_count     BIGINT  Those blocks.
-- @column pending_free_share     DOUBLE  pending_free_bytes / (reserved - allocated); NULL where all is allocated.
-- @column hole_bytes             BIGINT  Bytes in inactive blocks of segments that are in use, default pool only.
-- @column hole_count             BIGINT  Those blocks.
-- @column largest_free_block     BIGINT  Bytes of the largest inactive block of the device, in whatever pool; 0 without
--   one.
-- @column largest_hole           BIGINT  Bytes of the largest inactive block that the default pool has in segments that
--   are in use; 0 without one.
-- @column unused_segment_bytes   BIGINT  Bytes in segments of the default pool without an active block.
-- @column unused_segment_count   BIGINT  Those segments.
-- @column largest_unused_segment BIGINT  Bytes of the largest of them; 0 without one.
-- @column private_reserved       BIGINT  Bytes in segments of private pools.
-- @column private_free_bytes     BIGINT  Bytes in inactive blocks of them.
-- @column private_segment_count  BIGINT  Those segments.
-- @column internal_waste_bytes   BIGINT  Bytes that rounding adds to active blocks; NULL where a block does not say.
-- @column active                 BIGINT  Bytes in blocks that are allocated or wait for a pending free.
-- @column segment_count          BIGINT  Segments.
-- @column expandable_count       BIGINT  Of them, expandable ones.
-- @column workspace_bytes        BIGINT  Bytes of the NPU's workspace segments, which are in no other column.
-- @column workspace_like_bytes   BIGINT  Of unused_segment_bytes, what may be workspace of an NPU: nothing tells where
--   there is no history, and all that is known is that such segments come last and are of one free block.
-- @column workspace_guess_bytes  BIGINT  Of them, what stands behind a segment that is out of the order of addresses,
--   which segments of the caching allocator never are: import_stats has it under this name.
WITH silent AS (
  SELECT id AS device_id
  FROM devices
  WHERE device_type = 'Ascend-NPU'
    AND device_index >= 0
    AND NOT EXISTS (SELECT 1 FROM traces)
),
likeness AS (
  SELECT
    f.device_id AS device_id,
    f.segment_id AS segment_id,
    f.total_size AS total_size,
    CASE
      WHEN f.segment_type = 'large'
        AND f.is_expandable = 0
        AND f.is_unused = 1
        AND f.block_count = 1
        AND f.pool_id_0 = 0
        AND f.pool_id_1 = 0
      THEN 1
      ELSE 0
    END AS is_like
  FROM silent AS n
  JOIN _segment_fragmentation AS f
    ON f.device_id = n.device_id
),
lasts AS (
  SELECT COALESCE(MAX(CASE WHEN is_like = 0 THEN segment_id END), 0) AS last_other_id
  FROM likeness
),
like_workspaces AS (
  SELECT
    k.device_id AS device_id,
    SUM(k.total_size) AS workspace_like_bytes
  FROM lasts AS l
  JOIN likeness AS k
    ON k.segment_id > l.last_other_id
  GROUP BY k.device_id
),
guesses AS (
  SELECT
    device_id,
    SUM(value) AS workspace_guess_bytes
  FROM import_stats
  WHERE name = 'workspace_guess_bytes'
  GROUP BY device_id
),
sums AS (
  SELECT
    device_id,
    SUM(total_size) AS reserved,
    SUM(allocated_size) AS allocated,
    SUM(pending_free_bytes) AS pending_free_bytes,
    SUM(pending_free_count) AS pending_free_count,
    SUM(CASE WHEN is_private = 0 AND is_unused = 0 THEN free_bytes ELSE 0 END) AS hole_bytes,
    SUM(CASE WHEN is_private = 0 AND is_unused = 0 THEN hole_count ELSE 0 END) AS hole_count,
    MAX(largest_free_block) AS largest_free_block,
    MAX(CASE WHEN is_private = 0 AND is_unused = 0 THEN largest_free_block ELSE 0 END)
      AS largest_hole,
    SUM(CASE WHEN is_private = 0 AND is_unused = 1 THEN total_size ELSE 0 END)
      AS unused_segment_bytes,
    SUM(CASE WHEN is_private = 0 AND is_unused = 1 THEN 1 ELSE 0 END) AS unused_segment_count,
    MAX(CASE WHEN is_private = 0 AND is_unused = 1 THEN total_size ELSE 0 END)
      AS largest_unused_segment,
    SUM(CASE WHEN is_private = 1 THEN total_size ELSE 0 END) AS private_reserved,
    SUM(CASE WHEN is_private = 1 THEN free_bytes ELSE 0 END) AS private_free_bytes,
    SUM(CASE WHEN is_private = 1 THEN 1 ELSE 0 END) AS private_segment_count,
    CASE WHEN COUNT(internal_waste_bytes) = COUNT(*) THEN SUM(internal_waste_bytes) END
      AS internal_waste_bytes,
    COUNT(*) AS segment_count,
    SUM(is_expandable) AS expandable_count
  FROM _segment_fragmentation
  GROUP BY device_id
),
workspaces AS (
  SELECT
    device_id,
    SUM(total_size) AS workspace_bytes
  FROM _workspace_segments
  GROUP BY device_id
)
SELECT
  d.id AS device_id,
  d.device_index AS device_index,
  COALESCE(s.reserved, 0) AS reserved,
  COALESCE(s.allocated, 0) AS allocated,
  CAST(s.reserved - s.allocated AS DOUBLE) / NULLIF(s.reserved, 0) AS fragmentation_ratio,
  COALESCE(s.pending_free_bytes, 0) AS pending_free_bytes,
  COALESCE(s.pending_free_count, 0) AS pending_free_count,
  CAST(s.pending_free_bytes AS DOUBLE) / NULLIF(s.reserved - s.allocated, 0)
    AS pending_free_share,
  COALESCE(s.hole_bytes, 0) AS hole_bytes,
  COALESCE(s.hole_count, 0) AS hole_count,
  COALESCE(s.largest_free_block, 0) AS largest_free_block,
  COALESCE(s.largest_hole, 0) AS largest_hole,
  COALESCE(s.unused_segment_bytes, 0) AS unused_segment_bytes,
  COALESCE(s.unused_segment_count, 0) AS unused_segment_count,
  COALESCE(s.largest_unused_segment, 0) AS largest_unused_segment,
  COALESCE(s.private_reserved, 0) AS private_reserved,
  COALESCE(s.private_free_bytes, 0) AS private_free_bytes,
  COALESCE(s.private_segment_count, 0) AS private_segment_count,
  CASE WHEN s.device_id IS NULL THEN 0 ELSE s.internal_waste_bytes END AS internal_waste_bytes,
  COALESCE(s.allocated + s.pending_free_bytes, 0) AS active,
  COALESCE(s.segment_count, 0) AS segment_count,
  COALESCE(s.expandable_count, 0) AS expandable_count,
  COALESCE(w.workspace_bytes, 0) AS workspace_bytes,
  COALESCE(k.workspace_like_bytes, 0) AS workspace_like_bytes,
  COALESCE(g.workspace_guess_bytes, 0) AS workspace_guess_bytes
FROM devices AS d
LEFT JOIN sums AS s
  ON s.device_id = d.id
LEFT JOIN workspaces AS w
  ON w.device_id = d.id
LEFT JOIN like_workspaces AS k
  ON k.device_id = d.id
LEFT JOIN guesses AS g
  ON g.device_id = d.id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index
