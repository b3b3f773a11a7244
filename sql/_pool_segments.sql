-- Segments of the caching allocator: all but those of the workspace allocator.
--
-- @column segment_id      BIGINT  segments.id.
-- @column device_id       BIGINT  devices.id.
-- @column total_size      BIGINT  Bytes reserved from the driver.
-- @column allocated_size  BIGINT  Bytes in blocks in state active_allocated; NULL where the snapshot does not say.
-- @column active_size     BIGINT  Bytes in blocks that are allocated or wait for a pending free; NULL likewise.
-- @column requested_size  BIGINT  Bytes asked for in active blocks; NULL likewise.
SELECT
  s.id AS segment_id,
  s.device_id AS device_id,
  s.total_size AS total_size,
  s.allocated_size AS allocated_size,
  s.active_size AS active_size,
  s.requested_size AS requested_size
FROM segments AS s
LEFT JOIN _workspace_segments AS w
  ON w.segment_id = s.id
WHERE w.segment_id IS NULL
