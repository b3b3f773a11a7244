-- Mapped memory at a moment, with what lived in it and the gaps between: one row per contiguous range.
--
-- Worked out backwards from the segments of the final state and the segment events behind the moment. Without
-- expandable segments a range is a segment; of an expandable one it is a part that is mapped without a gap. Blocks are
-- those of table allocations; where a block's size is not proven, the gap behind it can be up to 1 MiB smaller.
-- Workspaces are left out, and so are devices whose events do not lead up to the final state (no replay_checks.base).
-- Where the events of a device do not say their memory pool, as before PyTorch 2.12 and torch_npu 26.2, that of a range is
-- known only as far as nothing was mapped or given back at its start until the end.
--
-- With the setting max_split_size a block of that size and more serves no smaller request, and a request of that size and
-- more takes no block that is larger by 20 MiB or more. The oversize_ columns count, at an out-of-memory event that says
-- what was asked for, the gaps that are kept from its request so; at any other moment none.
--
-- @param event    BIGINT = NULL  Look at the devices as they were after the event with this trace_index. NULL: after
--   each out-of-memory event. A number beyond the events there are stands for the moment before the first one or the
--   end, and `npusnap sql` says so on standard error.
-- @param device   BIGINT = NULL  Only this device_index; NULL for all.
-- @param newest   BIGINT = 16    Of a device's out-of-memory events, only the newest; NULL for all.
--
-- @column device_id           BIGINT  devices.id.
-- @column device_index        BIGINT  Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column trace_index         BIGINT  The moment: the event after which this was so.
-- @column address             BIGINT  Start address.
-- @column total_size          BIGINT  Bytes mapped.
-- @column allocated_size      BIGINT  Bytes in blocks that were in use, rounding included.
-- @column pending_free_bytes  BIGINT  Bytes in blocks that were freed but waited for another stream.
-- @column free_bytes          BIGINT  Bytes in no block.
-- @column hole_count          BIGINT  Gaps.
-- @column largest_free_block  BIGINT  Bytes of the largest gap; 0 without one.
-- @column block_count         BIGINT  Blocks.
-- @column largest_block       BIGINT  Bytes of the largest block; 0 without one.
-- @column stream              BIGINT  Stream; NULL where none is known.
-- @column is_private          BIGINT  1 in a pool other than (0, 0); 0 also where the pool is not known.
-- @column is_small            BIGINT  1 where it serves requests of up to 1 MiB, 0 where it serves larger ones: told
--   by its blocks; without any by its size, since segments for large requests have 10 MiB or more.
-- @column is_expandable       BIGINT  1 where it was mapped page by page, 0 where it is a segment.
-- @column pool_id_0           BIGINT  First word of the memory pool's id; NULL where it is not known.
-- @column pool_id_1           BIGINT  Second word; NULL likewise.
-- @column last_alloc_index    BIGINT  The newest event that allocated one of its blocks; NULL where none was recorded.
-- @column oversize_bytes      BIGINT  Of free_bytes, what max_split_size keeps from the request.
-- @column oversize_count      BIGINT  Of hole_count, those gaps.
-- @column largest_open_block  BIGINT  Bytes of the largest of the other gaps; 0 without one.
WITH anchored AS (
  SELECT d.id AS device_id
  FROM devices AS d
  JOIN _memory_base AS b
    ON b.device_id = d.id
  WHERE b.reserved IS NOT NULL
    AND b.active IS NOT NULL
    AND ($device IS NULL OR d.device_index = $device)
),
-- oversize: bytes from which on a gap is kept from the request; NULL where none is.
moments AS (
  SELECT
    a.device_id AS device_id,
    CAST($event AS BIGINT) AS trace_index,
    e.oversize AS oversize
  FROM anchored AS a
  LEFT JOIN _oom_events AS e
    ON e.device_id = a.device_id
    AND e.trace_index = CAST($event AS BIGINT)
  WHERE $event IS NOT NULL
  UNION ALL
  SELECT
    e.device_id AS device_id,
    e.trace_index AS trace_index,
    e.oversize AS oversize
  FROM anchored AS a
  JOIN _oom_events AS e
    ON e.device_id = a.device_id
  WHERE $event IS NULL
    AND ($newest IS NULL OR e.newest <= $newest)
),
-- Devices whose events say their memory pool.
telling AS (
  SELECT DISTINCT device_id
  FROM _segment_events
  WHERE pool_id_0 IS NOT NULL
    AND pool_id_1 IS NOT NULL
),
-- What is mapped at the end, and every event that changed it, which is undone where it lies behind
-- the moment.
all_pieces AS (
  SELECT
    device_id,
    CAST(NULL AS BIGINT) AS event_index,
    address,
    total_size AS size,
    1 AS depth_change,
    CASE WHEN COALESCE(is_expandable, 0) = 0 THEN 1 ELSE 0 END AS start_count,
    stream,
    pool_id_0,
    pool_id_1
  FROM _pool_segments
  -- The end has to fit in 64 bits. Nothing real has 2^49 bytes, or lies in the last so many before
  -- 2^63.
  WHERE address <= 9222809086901354495
    AND total_size < 562949953421312
  UNION ALL
  SELECT
    device_id,
    trace_index AS event_index,
    addr AS address,
    size,
    1 - 2 * is_growth AS depth_change,
    CASE action WHEN 'segment_alloc' THEN -1 WHEN 'segment_free' THEN 1 ELSE 0 END AS start_count,
    stream,
    pool_id_0,
    pool_id_1
  FROM _segment_events
  WHERE addr <= 9222809086901354495
    AND size < 562949953421312
),
-- Pieces of one owner cancel each other out. Where the events do not say their pool, the stream
-- alone owns them, and what is there at the end may be another's who came later.
pieces AS (
  SELECT
    p.device_id AS device_id,
    p.event_index AS event_index,
    p.address AS address,
    p.size AS size,
    p.depth_change AS depth_change,
    p.start_count AS start_count,
    p.stream AS stream,
    p.pool_id_0 AS pool_id_0,
    p.pool_id_1 AS pool_id_1,
    CASE WHEN t.device_id IS NULL THEN 0 ELSE COALESCE(p.pool_id_0, 0) END AS owner_0,
    CASE WHEN t.device_id IS NULL THEN 0 ELSE COALESCE(p.pool_id_1, 0) END AS owner_1,
    CASE WHEN t.device_id IS NULL AND p.event_index IS NOT NULL THEN 1 ELSE 0 END AS is_untold
  FROM all_pieces AS p
  LEFT JOIN telling AS t
    ON t.device_id = p.device_id
),
sides AS (
  SELECT 1 AS side
  UNION ALL
  SELECT -1 AS side
),
-- The address axis: +1 where mapped memory begins, -1 where it ends.
boundaries AS (
  SELECT
    m.device_id AS device_id,
    m.trace_index AS trace_index,
    CASE x.side WHEN 1 THEN p.address ELSE p.address + p.size END AS address,
    x.side AS side,
    p.depth_change * x.side AS depth_change,
    CASE x.side WHEN 1 THEN p.start_count ELSE 0 END AS start_count,
    p.stream AS stream,
    p.owner_0 AS owner_0,
    p.owner_1 AS owner_1,
    p.pool_id_0 AS pool_id_0,
    p.pool_id_1 AS pool_id_1,
    p.is_untold AS is_untold
  FROM moments AS m
  JOIN pieces AS p
    ON p.device_id = m.device_id
  CROSS JOIN sides AS x
  WHERE p.event_index IS NULL
    OR p.event_index > m.trace_index
),
-- What was given back and what was taken later cancel each other out, by owner.
by_owner AS (
  SELECT
    device_id,
    trace_index,
    address,
    side,
    stream,
    CASE WHEN MAX(is_untold) = 0 THEN MAX(pool_id_0) END AS pool_id_0,
    CASE WHEN MAX(is_untold) = 0 THEN MAX(pool_id_1) END AS pool_id_1,
    SUM(depth_change) AS depth_change,
    SUM(start_count) AS start_count
  FROM boundaries
  GROUP BY device_id, trace_index, address, side, stream, owner_0, owner_1
),
-- What begins at an address owns the range there. Where nothing does, a range begins behind the end
-- of a piece that was mapped later, into the middle of what was one.
by_address AS (
  SELECT
    device_id,
    trace_index,
    address,
    SUM(depth_change) AS depth_change,
    SUM(start_count) AS start_count,
    MAX(CASE WHEN side = 1 AND depth_change > 0 THEN 1 ELSE 0 END) AS is_start,
    MAX(CASE WHEN side = 1 AND depth_change > 0 THEN stream END) AS start_stream,
    MAX(CASE WHEN side = 1 AND depth_change > 0 THEN pool_id_0 END) AS start_pool_0,
    MAX(CASE WHEN side = 1 AND depth_change > 0 THEN pool_id_1 END) AS start_pool_1,
    MAX(CASE WHEN side = -1 AND depth_change > 0 THEN stream END) AS end_stream,
    MAX(CASE WHEN side = -1 AND depth_change > 0 THEN pool_id_0 END) AS end_pool_0,
    MAX(CASE WHEN side = -1 AND depth_change > 0 THEN pool_id_1 END) AS end_pool_1
  FROM by_owner
  GROUP BY device_id, trace_index, address
),
depths AS (
  SELECT
    device_id,
    trace_index,
    address,
    SUM(depth_change) OVER (
      PARTITION BY device_id, trace_index
      ORDER BY address
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS depth,
    depth_change,
    start_count,
    CASE is_start WHEN 1 THEN start_stream ELSE end_stream END AS stream,
    CASE is_start WHEN 1 THEN start_pool_0 ELSE end_pool_0 END AS pool_id_0,
    CASE is_start WHEN 1 THEN start_pool_1 ELSE end_pool_1 END AS pool_id_1
  FROM by_address
),
-- All that lies on the axis, in its order: a range ends (rank 0), one begins (1), its blocks (2).
-- Neighbours are one range unless the driver handed them out one by one.
items AS (
  SELECT
    d.device_id AS device_id,
    d.trace_index AS trace_index,
    d.address AS address,
    CASE x.side WHEN 1 THEN 1 ELSE 0 END AS rank,
    0 AS size,
    0 AS is_allocated,
    CAST(NULL AS BIGINT) AS alloc_index,
    d.stream AS stream,
    d.pool_id_0 AS pool_id_0,
    d.pool_id_1 AS pool_id_1,
    CASE WHEN d.start_count > 0 THEN 0 ELSE 1 END AS is_expandable
  FROM depths AS d
  CROSS JOIN sides AS x
  WHERE ((d.depth > 0) <> (d.depth - d.depth_change > 0) OR (d.depth > 0 AND d.start_count > 0))
    AND ((x.side = 1 AND d.depth > 0) OR (x.side = -1 AND d.depth - d.depth_change > 0))
  UNION ALL
  SELECT
    m.device_id AS device_id,
    m.trace_index AS trace_index,
    a.addr AS address,
    2 AS rank,
    a.block_size AS size,
    CASE WHEN a.allocated_until IS NULL OR a.allocated_until > m.trace_index THEN 1 ELSE 0 END
      AS is_allocated,
    a.alloc_index AS alloc_index,
    CAST(NULL AS BIGINT) AS stream,
    CAST(NULL AS BIGINT) AS pool_id_0,
    CAST(NULL AS BIGINT) AS pool_id_1,
    0 AS is_expandable
  FROM moments AS m
  JOIN _sized_allocations AS a
    ON a.device_id = m.device_id
  WHERE a.addr <= 9222809086901354495
    AND (a.alloc_index IS NULL OR a.alloc_index <= m.trace_index)
    AND (a.free_completed_index IS NULL OR a.free_completed_index > m.trace_index)
),
placed AS (
  SELECT
    device_id,
    trace_index,
    address,
    rank,
    size,
    is_allocated,
    alloc_index,
    stream,
    pool_id_0,
    pool_id_1,
    is_expandable,
    SUM(CASE WHEN rank = 1 THEN 1 ELSE 0 END) OVER (
      PARTITION BY device_id, trace_index
      ORDER BY address, rank
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS begun,
    SUM(CASE WHEN rank = 0 THEN 1 ELSE 0 END) OVER (
      PARTITION BY device_id, trace_index
      ORDER BY address, rank
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS ended,
    MAX(address + size) OVER (
      PARTITION BY device_id, trace_index
      ORDER BY address, rank
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS used_until
  FROM items
),
gaps AS (
  SELECT
    device_id,
    trace_index,
    begun,
    address,
    rank,
    size,
    is_allocated,
    alloc_index,
    stream,
    pool_id_0,
    pool_id_1,
    is_expandable,
    CASE WHEN rank <> 1 AND address > used_until THEN address - used_until ELSE 0 END AS gap
  FROM placed
  -- A block that lies in no range is one that the final state contradicts.
  WHERE rank < 2
    OR begun > ended
),
judged AS (
  SELECT
    g.device_id AS device_id,
    g.trace_index AS trace_index,
    g.begun AS begun,
    g.address AS address,
    g.rank AS rank,
    g.size AS size,
    g.is_allocated AS is_allocated,
    g.alloc_index AS alloc_index,
    g.stream AS stream,
    g.pool_id_0 AS pool_id_0,
    g.pool_id_1 AS pool_id_1,
    g.is_expandable AS is_expandable,
    g.gap AS gap,
    CASE WHEN g.gap >= m.oversize THEN 1 ELSE 0 END AS is_oversize
  FROM gaps AS g
  JOIN moments AS m
    ON m.device_id = g.device_id
    AND m.trace_index = g.trace_index
),
ranges AS (
  SELECT
    device_id,
    trace_index,
    MIN(CASE WHEN rank = 1 THEN address END) AS address,
    MIN(CASE WHEN rank = 0 THEN address END) AS end_address,
    SUM(CASE WHEN is_allocated = 1 THEN size ELSE 0 END) AS allocated_size,
    SUM(CASE WHEN is_allocated = 0 THEN size ELSE 0 END) AS pending_free_bytes,
    SUM(gap) AS free_bytes,
    SUM(CASE WHEN gap > 0 THEN 1 ELSE 0 END) AS hole_count,
    MAX(gap) AS largest_free_block,
    SUM(CASE WHEN rank = 2 THEN 1 ELSE 0 END) AS block_count,
    MAX(size) AS largest_block,
    MAX(CASE WHEN rank = 1 THEN stream END) AS stream,
    MAX(CASE WHEN rank = 1 THEN pool_id_0 END) AS pool_id_0,
    MAX(CASE WHEN rank = 1 THEN pool_id_1 END) AS pool_id_1,
    MAX(CASE WHEN rank = 1 THEN is_expandable ELSE 0 END) AS is_expandable,
    MAX(alloc_index) AS last_alloc_index,
    SUM(gap * is_oversize) AS oversize_bytes,
    SUM(CASE WHEN gap > 0 THEN is_oversize ELSE 0 END) AS oversize_count,
    MAX(CASE WHEN is_oversize = 0 THEN gap ELSE 0 END) AS largest_open_block
  FROM judged
  GROUP BY device_id, trace_index, begun
)
SELECT
  r.device_id AS device_id,
  d.device_index AS device_index,
  r.trace_index AS trace_index,
  r.address AS address,
  r.end_address - r.address AS total_size,
  r.allocated_size AS allocated_size,
  r.pending_free_bytes AS pending_free_bytes,
  r.free_bytes AS free_bytes,
  r.hole_count AS hole_count,
  r.largest_free_block AS largest_free_block,
  r.block_count AS block_count,
  r.largest_block AS largest_block,
  r.stream AS stream,
  CASE WHEN r.pool_id_0 <> 0 OR r.pool_id_1 <> 0 THEN 1 ELSE 0 END AS is_private,
  CASE
    WHEN r.block_count > 0 THEN CASE WHEN r.largest_block <= 1048576 THEN 1 ELSE 0 END
    WHEN r.end_address - r.address < 10485760 THEN 1
    ELSE 0
  END AS is_small,
  r.is_expandable AS is_expandable,
  r.pool_id_0 AS pool_id_0,
  r.pool_id_1 AS pool_id_1,
  r.last_alloc_index AS last_alloc_index,
  r.oversize_bytes AS oversize_bytes,
  r.oversize_count AS oversize_count,
  r.largest_open_block AS largest_open_block
FROM ranges AS r
JOIN devices AS d
  ON d.id = r.device_id
WHERE r.end_address IS NOT NULL
  AND r.address IS NOT NULL
ORDER BY d.device_index, r.trace_index, r.address
