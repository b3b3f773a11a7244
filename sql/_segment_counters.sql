-- The five counters of every segment in the final state, from its blocks.
--
-- Segments of the workspace allocator are left out. Blocks that wait for a free and that the file shows as inactive
-- (_hidden_pending) are active here, as they are in `replay_checks.final`.
--
-- @column device_id            BIGINT  devices.id.
-- @column stream               BIGINT  Stream that owns the segment.
-- @column pool_id_0            BIGINT  First word of the memory pool's id.
-- @column pool_id_1            BIGINT  Second word.
-- @column reserved             BIGINT  Bytes of the segment.
-- @column allocated            BIGINT  Bytes in allocated blocks, rounding included.
-- @column active               BIGINT  Bytes in allocated and pending-free blocks, rounding included.
-- @column allocated_requested  BIGINT  Bytes asked for in allocated blocks; those that do not say count as 0.
-- @column active_requested     BIGINT  Bytes asked for in allocated and pending-free blocks; likewise.
WITH block_sums AS (
  SELECT
    segment_id,
    SUM(CASE WHEN state = 'active_allocated' THEN size ELSE 0 END) AS allocated,
    SUM(CASE WHEN state = 'inactive' THEN 0 ELSE size END) AS active,
    SUM(CASE WHEN state = 'active_allocated' THEN COALESCE(requested_size, 0) ELSE 0 END)
      AS allocated_requested,
    SUM(CASE WHEN state = 'inactive' THEN 0 ELSE COALESCE(requested_size, 0) END)
      AS active_requested
  FROM _actual_blocks
  GROUP BY segment_id
)
SELECT
  s.device_id AS device_id,
  s.stream AS stream,
  s.pool_id_0 AS pool_id_0,
  s.pool_id_1 AS pool_id_1,
  s.total_size AS reserved,
  COALESCE(b.allocated, 0) AS allocated,
  COALESCE(b.active, 0) AS active,
  COALESCE(b.allocated_requested, 0) AS allocated_requested,
  COALESCE(b.active_requested, 0) AS active_requested
FROM _pool_segments AS s
LEFT JOIN block_sums AS b
  ON b.segment_id = s.segment_id
