-- How much of every segment in the final state is not allocated, worst first, and why.
--
-- A segment without an active block (is_unused = 1) is cache that the allocator can give back whole: its ratio is 1, but
-- nothing in it is fragmented. Segments of the workspace allocator are left out. Blocks that an NPU shows as inactive
-- though they wait for a free that a graph's capture puts off count as pending, not as holes.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
-- @param limit   BIGINT = NULL  Only the worst; NULL for all.
--
-- @column segment_id            BIGINT   segments.id.
-- @column device_id             BIGINT   devices.id.
-- @column device_index          BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column address               BIGINT   Start address.
-- @column total_size            BIGINT   Bytes reserved from the driver.
-- @column allocated_size        BIGINT   Bytes in blocks in state active_allocated.
-- @column pending_free_bytes    BIGINT   Bytes in blocks that were freed but wait for another stream.
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
SELECT
  segment_id,
  device_id,
  device_index,
  address,
  total_size,
  allocated_size,
  pending_free_bytes,
  free_bytes,
  hole_count,
  largest_free_block,
  internal_waste_bytes,
  fragmentation_ratio,
  utilisation_ratio,
  block_count,
  segment_type,
  stream,
  pool_id_0,
  pool_id_1,
  is_private,
  is_expandable,
  is_unused,
  stack_id
FROM _segment_fragmentation
WHERE ($device IS NULL OR device_index = $device)
ORDER BY
  fragmentation_ratio IS NULL,
  fragmentation_ratio DESC,
  device_index,
  address,
  segment_id
LIMIT $limit
