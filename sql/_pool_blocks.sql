-- Blocks of the caching allocator: all but those in segments of the workspace allocator.
--
-- @kept
-- @column block_id        BIGINT   blocks.id.
-- @column segment_id      BIGINT   segments.id.
-- @column device_id       BIGINT   devices.id.
-- @column size            BIGINT   Bytes, rounding included.
-- @column requested_size  BIGINT   Bytes asked for; NULL where the block is not active, where it would be stale.
-- @column state           VARCHAR  active_allocated, active_pending_free or inactive.
-- @column stack_id        BIGINT   call_stacks.id; NULL where none was recorded.
-- @column address         BIGINT   Start address.
SELECT
  b.id AS block_id,
  b.segment_id AS segment_id,
  s.device_id AS device_id,
  b.size AS size,
  CASE WHEN b.state IN ('active_allocated', 'active_pending_free') THEN b.requested_size END
    AS requested_size,
  b.state AS state,
  b.stack_id AS stack_id,
  b.address AS address
FROM blocks AS b
JOIN _pool_segments AS s
  ON s.segment_id = b.segment_id
