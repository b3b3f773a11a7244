-- Why reserved memory grew: every request that needed new memory from the driver, with what was free when it came.
--
-- A free block serves requests of its own stream and kind (small: up to 1 MiB) only. So the cause is one of: `first`
-- (nothing was reserved for that stream and kind), `fragmented` (enough was free in sum, yet no single block was large
-- enough), `pending_free` (enough with what waited for another stream), `other_pool` (enough was free, but for another
-- stream or kind, or in a private pool), `full` (not enough was free anywhere). Segments that were mapped in several
-- steps for one request are one row. Kinds of segment events are told by their size: 2 MiB, or for mapped ranges no
-- multiple of 20 MiB, is small. Blocks count with the rounded size of their request.
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
-- @column cause               VARCHAR  first, fragmented, pending_free, other_pool or full; NULL without a request.
-- @column reserved_before     BIGINT   Bytes reserved for this stream and kind just before.
-- @column free_before         BIGINT   Of them, bytes in no block.
-- @column pending_before      BIGINT   Of them, bytes in blocks that were freed but waited for another stream.
-- @column device_free_before  BIGINT   Bytes reserved but in no block just before, in all pools of the device.
WITH running AS (
  SELECT
    device_id,
    stream,
    segment_type,
    growth_number,
    growth_index,
    grown_bytes,
    next_index,
    alloc_index,
    SUM(CASE WHEN growth_index IS NULL THEN 0 ELSE 1 END) OVER (
      PARTITION BY device_id, stream, segment_type
      ORDER BY growth_number
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS own_growth_number,
    SUM(alloc_count) OVER (
      PARTITION BY device_id, stream, segment_type
      ORDER BY growth_number
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) - alloc_count AS allocs_before,
    SUM(reserved_change) OVER (
      PARTITION BY device_id, stream, segment_type
      ORDER BY growth_number
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) - reserved_change AS reserved_net,
    SUM(active_change) OVER (
      PARTITION BY device_id, stream, segment_type
      ORDER BY growth_number
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) - active_change AS active_net,
    SUM(pending_change) OVER (
      PARTITION BY device_id, stream, segment_type
      ORDER BY growth_number
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) - pending_change AS pending_net
  FROM _growth_spans
),
device_spans AS (
  SELECT
    device_id,
    growth_number,
    SUM(reserved_change - active_change) AS free_change
  FROM _growth_spans
  GROUP BY device_id, growth_number
),
device_running AS (
  SELECT
    device_id,
    growth_number,
    SUM(free_change) OVER (
      PARTITION BY device_id
      ORDER BY growth_number
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) - free_change AS free_net
  FROM device_spans
),
-- One growth with what came behind it in the same stream and kind, up to the next growth there.
steps AS (
  SELECT
    device_id,
    stream,
    segment_type,
    own_growth_number,
    MIN(growth_number) AS growth_number,
    MIN(growth_index) AS growth_index,
    SUM(grown_bytes) AS grown_bytes,
    MIN(allocs_before) AS allocs_before,
    MIN(next_index) AS next_index,
    MIN(alloc_index) AS alloc_index,
    MIN(CASE WHEN growth_index IS NOT NULL THEN reserved_net END) AS reserved_net,
    MIN(CASE WHEN growth_index IS NOT NULL THEN active_net END) AS active_net,
    MIN(CASE WHEN growth_index IS NOT NULL THEN pending_net END) AS pending_net
  FROM running
  WHERE own_growth_number > 0
  GROUP BY device_id, stream, segment_type, own_growth_number
),
-- Growths without an allocation between them were made for one request: the allocation right behind the last.
growths AS (
  SELECT
    s.device_id AS device_id,
    s.stream AS stream,
    s.segment_type AS segment_type,
    MIN(s.growth_index) AS trace_index,
    SUM(s.grown_bytes) AS grown_bytes,
    MAX(CASE WHEN s.alloc_index = s.next_index THEN s.alloc_index END) AS alloc_index,
    MIN(s.reserved_net) AS reserved_net,
    MIN(s.reserved_net - s.active_net) AS free_net,
    MIN(s.pending_net) AS pending_net,
    MIN(v.free_net) AS device_free_net
  FROM steps AS s
  JOIN device_running AS v
    ON v.device_id = s.device_id
    AND v.growth_number = s.growth_number
  GROUP BY s.device_id, s.stream, s.segment_type, s.allocs_before
),
-- What was there before the first event: the final state minus all changes.
net_changes AS (
  SELECT
    device_id,
    stream,
    segment_type,
    SUM(reserved_change) AS reserved_change,
    SUM(active_change) AS active_change,
    SUM(pending_change) AS pending_change
  FROM _growth_spans
  GROUP BY device_id, stream, segment_type
),
final_sums AS (
  SELECT
    device_id,
    stream,
    segment_type,
    SUM(total_size) AS reserved,
    SUM(allocated_size + pending_free_bytes) AS active,
    SUM(pending_free_bytes) AS pending
  FROM segment_fragmentation
  GROUP BY device_id, stream, segment_type
),
bases AS (
  SELECT
    n.device_id AS device_id,
    n.stream AS stream,
    n.segment_type AS segment_type,
    COALESCE(f.reserved, 0) - n.reserved_change AS reserved,
    COALESCE(f.active, 0) - n.active_change AS active,
    COALESCE(f.pending, 0) - n.pending_change AS pending
  FROM net_changes AS n
  LEFT JOIN final_sums AS f
    ON f.device_id = n.device_id
    AND f.stream = n.stream
    AND f.segment_type = n.segment_type
),
device_changes AS (
  SELECT
    device_id,
    SUM(reserved_change - active_change) AS free_change
  FROM net_changes
  GROUP BY device_id
),
device_finals AS (
  SELECT
    device_id,
    SUM(reserved - active) AS free_bytes
  FROM final_sums
  GROUP BY device_id
),
device_bases AS (
  SELECT
    n.device_id AS device_id,
    COALESCE(f.free_bytes, 0) - n.free_change AS free_bytes
  FROM device_changes AS n
  LEFT JOIN device_finals AS f
    ON f.device_id = n.device_id
),
levels AS (
  SELECT
    g.device_id AS device_id,
    g.trace_index AS trace_index,
    g.stream AS stream,
    g.segment_type AS segment_type,
    g.grown_bytes AS grown_bytes,
    t.size + 511 - (t.size + 511) % 512 AS requested,
    b.reserved + g.reserved_net AS reserved_before,
    b.reserved - b.active + g.free_net AS free_before,
    b.pending + g.pending_net AS pending_before,
    v.free_bytes + g.device_free_net AS device_free_before
  FROM growths AS g
  JOIN bases AS b
    ON b.device_id = g.device_id
    AND b.stream = g.stream
    AND b.segment_type = g.segment_type
  JOIN device_bases AS v
    ON v.device_id = g.device_id
  LEFT JOIN traces AS t
    ON t.device_id = g.device_id
    AND t.trace_index = g.alloc_index
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
    WHEN l.requested IS NULL THEN NULL
    WHEN l.reserved_before <= 0 THEN 'first'
    WHEN l.free_before >= l.requested THEN 'fragmented'
    WHEN l.free_before + l.pending_before >= l.requested THEN 'pending_free'
    WHEN l.device_free_before >= l.requested THEN 'other_pool'
    ELSE 'full'
  END AS cause,
  l.reserved_before AS reserved_before,
  l.free_before AS free_before,
  l.pending_before AS pending_before,
  l.device_free_before AS device_free_before
FROM levels AS l
JOIN devices AS d
  ON d.id = l.device_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index, l.trace_index
