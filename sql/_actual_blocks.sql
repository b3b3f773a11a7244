-- Blocks of the caching allocator in the state they are in, which is not always what the snapshot shows.
--
-- Those of _hidden_pending wait for a pending free and are shown as inactive.
--
-- @column block_id        BIGINT   blocks.id.
-- @column segment_id      BIGINT   segments.id.
-- @column device_id       BIGINT   devices.id.
-- @column size            BIGINT   Bytes, rounding included.
-- @column requested_size  BIGINT   Bytes asked for; NULL where the block is not active, or does not say.
-- @column state           VARCHAR  active_allocated, active_pending_free or inactive.
-- @column stack_id        BIGINT   call_stacks.id; NULL where none was recorded.
-- @column address         BIGINT   Start address.
SELECT
  b.block_id AS block_id,
  b.segment_id AS segment_id,
  b.device_id AS device_id,
  b.size AS size,
  CASE WHEN h.block_id IS NULL THEN b.requested_size ELSE h.requested_size END AS requested_size,
  CASE WHEN h.block_id IS NULL THEN b.state ELSE 'active_pending_free' END AS state,
  b.stack_id AS stack_id,
  b.address AS address
FROM _pool_blocks AS b
LEFT JOIN _hidden_pending AS h
  ON h.block_id = b.block_id
