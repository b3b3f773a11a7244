-- Segments of the caching allocator: all but those of the workspace allocator.
--
-- @kept
-- @column segment_id      BIGINT   segments.id.
-- @column device_id       BIGINT   devices.id.
-- @column total_size      BIGINT   Bytes reserved from the driver.
-- @column allocated_size  BIGINT   Bytes in blocks in state active_allocated; NULL where the snapshot does not say.
-- @column active_size     BIGINT   Bytes in blocks that are allocated or wait for a pending free; NULL likewise.
-- @column requested_size  BIGINT   Bytes asked for in active blocks; NULL likewise.
-- @column address         BIGINT   Start address.
-- @column stream          BIGINT   Stream that owns it.
-- @column segment_type    VARCHAR  large or small.
-- @column pool_id_0       BIGINT   First word of the memory pool's id; (0, 0) is the default pool.
-- @column pool_id_1       BIGINT   Second word.
-- @column is_expandable   BIGINT   1 for an expandable segment, else 0.
-- @column stack_id        BIGINT   call_stacks.id; NULL where none was recorded.
SELECT
  s.id AS segment_id,
  s.device_id AS device_id,
  s.total_size AS total_size,
  s.allocated_size AS allocated_size,
  s.active_size AS active_size,
  s.requested_size AS requested_size,
  s.address AS address,
  s.stream AS stream,
  s.segment_type AS segment_type,
  s.pool_id_0 AS pool_id_0,
  s.pool_id_1 AS pool_id_1,
  s.is_expandable AS is_expandable,
  s.stack_id AS stack_id
FROM segments AS s
LEFT JOIN _workspace_segments AS w
  ON w.segment_id = s.id
WHERE w.segment_id IS NULL
