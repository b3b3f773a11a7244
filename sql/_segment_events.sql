-- Events that change what is reserved, without the entries of the workspace allocator.
--
-- Where the dump was of one memory pool, the events of others are left out as well.
--
-- @kept
-- @column device_id    BIGINT   devices.id.
-- @column trace_index  BIGINT   Position of the event in the device's history.
-- @column slice_index  BIGINT   Slice of events it lies in: see _scale.
-- @column action       VARCHAR  segment_alloc, segment_map, segment_free or segment_unmap.
-- @column is_growth    BIGINT   1 where memory was added, 0 where it was given back.
-- @column is_late      BIGINT   1 in the second half of the device's history, else 0.
-- @column addr         BIGINT   Start address.
-- @column size         BIGINT   Bytes.
-- @column stream       BIGINT   Stream.
-- @column pool_id_0    BIGINT   First word of the memory pool's id; NULL where the producer does not write it.
-- @column pool_id_1    BIGINT   Second word.
SELECT
  t.device_id AS device_id,
  t.trace_index AS trace_index,
  t.trace_index / NULLIF(k.slice_width, 0) AS slice_index,
  t.action AS action,
  CASE WHEN t.action IN ('segment_alloc', 'segment_map') THEN 1 ELSE 0 END AS is_growth,
  CASE WHEN t.trace_index * 2 > k.first_index + k.last_index THEN 1 ELSE 0 END AS is_late,
  t.addr AS addr,
  t.size AS size,
  t.stream AS stream,
  t.pool_id_0 AS pool_id_0,
  t.pool_id_1 AS pool_id_1
FROM _event_scale AS k
LEFT JOIN _event_rules AS r
  ON r.device_id = k.device_id
JOIN traces AS t
  ON t.device_id = k.device_id
WHERE t.is_workspace = 0
  AND t.action IN ('segment_alloc', 'segment_map', 'segment_free', 'segment_unmap')
  AND (r.only_pool_0 IS NULL OR t.pool_id_0 IS NULL OR t.pool_id_0 = r.only_pool_0)
  AND (r.only_pool_1 IS NULL OR t.pool_id_1 IS NULL OR t.pool_id_1 = r.only_pool_1)
