-- Events that change what is reserved, without the entries of the workspace allocator.
--
-- @kept
-- @column device_id    BIGINT   devices.id.
-- @column trace_index  BIGINT   Position of the event in the device's history.
-- @column action       VARCHAR  segment_alloc, segment_map, segment_free or segment_unmap.
-- @column is_growth    BIGINT   1 where memory was added, 0 where it was given back.
-- @column addr         BIGINT   Start address.
-- @column size         BIGINT   Bytes.
-- @column stream       BIGINT   Stream.
-- @column pool_id_0    BIGINT   First word of the memory pool's id; NULL where the producer does not write it.
-- @column pool_id_1    BIGINT   Second word.
SELECT
  device_id,
  trace_index,
  action,
  CASE WHEN action IN ('segment_alloc', 'segment_map') THEN 1 ELSE 0 END AS is_growth,
  addr,
  size,
  stream,
  pool_id_0,
  pool_id_1
FROM traces
WHERE is_workspace = 0
  AND action IN ('segment_alloc', 'segment_map', 'segment_free', 'segment_unmap')
