-- Segments of the NPU's workspace allocator, which a snapshot lists behind those of the caching allocator.
--
-- Nothing in a segment says that it is one. Where history was recorded, a `workspace_snapshot` entry announces each,
-- with the same device and address. They are no part of reserved memory: `memory_reserved()` does not count them.
--
-- @kept
-- @column segment_id  BIGINT  segments.id.
-- @column device_id   BIGINT  devices.id.
-- @column total_size  BIGINT  Bytes.
SELECT DISTINCT
  s.id AS segment_id,
  s.device_id AS device_id,
  s.total_size AS total_size
FROM segments AS s
JOIN traces AS t
  ON t.device_id = s.device_id
  AND t.addr = s.address
WHERE t.action = 'workspace_snapshot'
  AND t.is_workspace = 1
