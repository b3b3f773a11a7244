-- Why reserved memory grew: every request that needed new memory from the driver, with what was free when it came.
--
-- A free block serves requests of its own stream, memory pool and kind (small: up to 1 MiB) only. So the cause is one
-- of: `first` (nothing was reserved for them), `fragmented` (enough was free in sum, yet no single block was large
-- enough), `pending_free` (enough with what waited for another stream), `other_pool` (enough was free, but for another
-- stream or kind, or in another memory pool), `full` (not enough was free anywhere). Memory pools are told apart where
-- the events say theirs. Segments that were mapped in several steps for one request are one row. What was free before
-- is worked out from the final state: a device whose events do not lead up to it (no replay_checks.base) has no row, and
-- one whose blocks do not add up to its curve (replay_checks.residual of active is not 0) has no levels and no cause.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id           BIGINT   devices.id.
-- @column device_index        BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column trace_index         BIGINT   Position of the segment_alloc or first segment_map in the device's history.
-- @column stream              BIGINT   Stream.
-- @column segment_type        VARCHAR  large or small.
-- @column grown_bytes         BIGINT   Bytes that were added.
-- @column requested           BIGINT   Bytes of the request, rounded; NULL where none followed.
-- @column cause               VARCHAR  first, fragmented, pending_free, other_pool or full; NULL without a request, and
--   where the levels are not known.
-- @column reserved_before     BIGINT   Bytes reserved for this stream, pool and kind just before.
-- @column free_before         BIGINT   Of them, bytes in no block.
-- @column pending_before      BIGINT   Of them, bytes in blocks that were freed but waited for another stream.
-- @column device_free_before  BIGINT   Bytes reserved but in no block just before, in all pools of the device.
WITH running AS (
  SELECT
    s.device_id AS device_id,
    s.stream AS stream,
    s.pool_id_0 AS pool_id_0,
    s.pool_id_1 AS pool_id_1,
    s.segment_type AS segment_type,
    s.tells_pool AS tells_pool,
    s.trace_index AS trace_index,
    s.grown_bytes AS grown_bytes,
    s.requested AS requested,
    -- What is still to come from a moment on; that is what the final state has more than there was.
    SUM(s.reserved_change) OVER (
      PARTITION BY s.device_id, s.stream, s.pool_id_0, s.pool_id_1, s.segment_type
      ORDER BY s.span DESC
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS reserved_to_come,
    SUM(s.active_change) OVER (
      PARTITION BY s.device_id, s.stream, s.pool_id_0, s.pool_id_1, s.segment_type
      ORDER BY s.span DESC
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS active_to_come,
    SUM(s.pending_change) OVER (
      PARTITION BY s.device_id, s.stream, s.pool_id_0, s.pool_id_1, s.segment_type
      ORDER BY s.span DESC
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS pending_to_come,
    -- From the end back, the growth is the last row of its span: all others are still to come.
    SUM(s.reserved_change - s.active_change) OVER (
      PARTITION BY s.device_id
      ORDER BY s.span DESC, s.trace_index IS NULL DESC
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS free_to_come
  FROM _memory_base AS b
  JOIN _growth_spans AS s
    ON s.device_id = b.device_id
  WHERE b.reserved IS NOT NULL
    AND b.active IS NOT NULL
),
tellings AS (
  SELECT 0 AS tells_pool
  UNION ALL
  SELECT 1 AS tells_pool
),
final_pools AS (
  SELECT
    f.device_id AS device_id,
    t.tells_pool AS tells_pool,
    f.stream AS stream,
    CASE t.tells_pool WHEN 1 THEN COALESCE(f.pool_id_0, 0) ELSE 0 END AS pool_id_0,
    CASE t.tells_pool WHEN 1 THEN COALESCE(f.pool_id_1, 0) ELSE 0 END AS pool_id_1,
    f.segment_type AS segment_type,
    f.total_size AS total_size,
    f.allocated_size AS allocated_size,
    f.pending_free_bytes AS pending_free_bytes
  FROM tellings AS t
  CROSS JOIN _segment_fragmentation AS f
),
finals AS (
  SELECT
    device_id,
    tells_pool,
    stream,
    pool_id_0,
    pool_id_1,
    segment_type,
    SUM(total_size) AS reserved,
    SUM(allocated_size + pending_free_bytes) AS active,
    SUM(pending_free_bytes) AS pending
  FROM final_pools
  GROUP BY device_id, tells_pool, stream, pool_id_0, pool_id_1, segment_type
),
device_finals AS (
  SELECT
    device_id,
    SUM(total_size - allocated_size - pending_free_bytes) AS free_bytes
  FROM _segment_fragmentation
  GROUP BY device_id
),
doubts AS (
  SELECT device_id
  FROM replay_checks
  WHERE counter = 'active'
    AND residual <> 0
),
growths AS (
  SELECT
    r.device_id AS device_id,
    r.stream AS stream,
    r.pool_id_0 AS pool_id_0,
    r.pool_id_1 AS pool_id_1,
    r.segment_type AS segment_type,
    r.trace_index AS trace_index,
    r.grown_bytes AS grown_bytes,
    r.requested AS requested,
    COALESCE(f.reserved, 0) - r.reserved_to_come AS reserved_before,
    COALESCE(f.reserved - f.active, 0) - r.reserved_to_come + r.active_to_come AS free_before,
    COALESCE(f.pending, 0) - r.pending_to_come AS pending_before,
    COALESCE(d.free_bytes, 0) - r.free_to_come AS device_free_before,
    LAG(r.trace_index) OVER (
      PARTITION BY r.device_id, r.stream, r.pool_id_0, r.pool_id_1, r.segment_type
      ORDER BY r.trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS last_index
  FROM running AS r
  LEFT JOIN finals AS f
    ON f.device_id = r.device_id
    AND f.tells_pool = r.tells_pool
    AND f.stream = r.stream
    AND f.pool_id_0 = r.pool_id_0
    AND f.pool_id_1 = r.pool_id_1
    AND f.segment_type = r.segment_type
  LEFT JOIN device_finals AS d
    ON d.device_id = r.device_id
  WHERE r.trace_index IS NOT NULL
    AND r.stream IS NOT NULL
),
-- Mappings for one request follow each other without anything between.
numbered AS (
  SELECT
    device_id,
    stream,
    pool_id_0,
    pool_id_1,
    segment_type,
    trace_index,
    grown_bytes,
    requested,
    reserved_before,
    free_before,
    pending_before,
    device_free_before,
    SUM(CASE WHEN trace_index = last_index + 1 THEN 0 ELSE 1 END) OVER (
      PARTITION BY device_id, stream, pool_id_0, pool_id_1, segment_type
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS request_number
  FROM growths
),
levels AS (
  SELECT
    device_id,
    stream,
    pool_id_0,
    pool_id_1,
    segment_type,
    MIN(trace_index) AS trace_index,
    SUM(grown_bytes) AS grown_bytes,
    MAX(requested) AS requested,
    MIN(reserved_before) AS reserved_before,
    MIN(free_before) AS free_before,
    MIN(pending_before) AS pending_before,
    MIN(device_free_before) AS device_free_before
  FROM numbered
  GROUP BY device_id, stream, pool_id_0, pool_id_1, segment_type, request_number
)
SELECT
  l.device_id AS device_id,
  d.device_index AS device_index,
  l.trace_index AS trace_index,
  l.stream AS stream,
  l.segment_type AS segment_type,
  l.grown_bytes AS grown_bytes,
  l.requested AS requested,
  CASE
    WHEN l.requested IS NULL OR q.device_id IS NOT NULL THEN NULL
    WHEN l.reserved_before <= 0 THEN 'first'
    WHEN l.free_before >= l.requested THEN 'fragmented'
    WHEN l.free_before + l.pending_before >= l.requested THEN 'pending_free'
    WHEN l.device_free_before >= l.requested THEN 'other_pool'
    ELSE 'full'
  END AS cause,
  l.reserved_before AS reserved_before,
  CASE WHEN q.device_id IS NULL THEN l.free_before END AS free_before,
  CASE WHEN q.device_id IS NULL THEN l.pending_before END AS pending_before,
  CASE WHEN q.device_id IS NULL THEN l.device_free_before END AS device_free_before
FROM levels AS l
JOIN devices AS d
  ON d.id = l.device_id
LEFT JOIN doubts AS q
  ON q.device_id = l.device_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index, l.trace_index
