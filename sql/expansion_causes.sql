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
WITH changes AS (
  SELECT
    device_id,
    trace_index,
    stream,
    action,
    CASE
      WHEN action IN ('alloc', 'free_requested', 'free_completed')
      THEN size + 511 - (size + 511) % 512
      ELSE size
    END AS size,
    CASE
      WHEN action IN ('alloc', 'free_requested', 'free_completed')
      THEN CASE WHEN size <= 1048576 THEN 'small' ELSE 'large' END
      WHEN action IN ('segment_alloc', 'segment_free')
      THEN CASE WHEN size <= 2097152 THEN 'small' ELSE 'large' END
      WHEN size % 20971520 = 0 THEN 'large'
      ELSE 'small'
    END AS segment_type
  FROM traces
  WHERE is_workspace = 0
    AND size IS NOT NULL
    AND action IN ('alloc', 'free_requested', 'free_completed', 'segment_alloc', 'segment_map',
      'segment_free', 'segment_unmap')
),
deltas AS (
  SELECT
    device_id,
    trace_index,
    stream,
    segment_type,
    action,
    size,
    CASE WHEN action IN ('segment_alloc', 'segment_map') THEN 1 ELSE 0 END AS is_growth,
    CASE
      WHEN action IN ('segment_alloc', 'segment_map') THEN size
      WHEN action IN ('segment_free', 'segment_unmap') THEN -size
      ELSE 0
    END AS reserved_change,
    CASE action WHEN 'alloc' THEN size WHEN 'free_completed' THEN -size ELSE 0 END
      AS active_change,
    CASE action WHEN 'free_requested' THEN size WHEN 'free_completed' THEN -size ELSE 0 END
      AS pending_change
  FROM changes
),
running AS (
  SELECT
    device_id,
    trace_index,
    stream,
    segment_type,
    action,
    size,
    is_growth,
    reserved_change,
    active_change,
    SUM(reserved_change) OVER (
      PARTITION BY device_id, stream, segment_type
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS reserved_net,
    SUM(active_change) OVER (
      PARTITION BY device_id, stream, segment_type
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS active_net,
    SUM(pending_change) OVER (
      PARTITION BY device_id, stream, segment_type
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS pending_net,
    SUM(reserved_change - active_change) OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS device_free_net,
    SUM(CASE WHEN action = 'alloc' THEN 1 ELSE 0 END) OVER (
      PARTITION BY device_id, stream, segment_type
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS alloc_count,
    LAG(is_growth) OVER (
      PARTITION BY device_id, stream, segment_type
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS follows_growth
  FROM deltas
),
-- A request belongs to the growth before it: the same number of allocations were made before both.
growths AS (
  SELECT
    device_id,
    stream,
    segment_type,
    CASE WHEN action = 'alloc' THEN alloc_count - 1 ELSE alloc_count END AS alloc_number,
    MIN(CASE WHEN is_growth = 1 THEN trace_index END) AS trace_index,
    SUM(CASE WHEN is_growth = 1 THEN size ELSE 0 END) AS grown_bytes,
    MAX(CASE WHEN action = 'alloc' THEN size END) AS requested,
    MIN(CASE WHEN is_growth = 1 THEN reserved_net - reserved_change END) AS reserved_net,
    MIN(CASE WHEN is_growth = 1 THEN reserved_net - reserved_change - active_net END) AS free_net,
    MIN(CASE WHEN is_growth = 1 THEN pending_net END) AS pending_net,
    MIN(CASE WHEN is_growth = 1 THEN device_free_net - reserved_change END) AS device_free_net
  FROM running
  WHERE is_growth = 1
    OR (action = 'alloc' AND follows_growth = 1)
  GROUP BY device_id, stream, segment_type,
    CASE WHEN action = 'alloc' THEN alloc_count - 1 ELSE alloc_count END
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
  FROM deltas
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
    g.requested AS requested,
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
  WHERE g.trace_index IS NOT NULL
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
