-- Whether the free blocks of a pool fit what the program asks for, one row per device, stream and kind of segment.
--
-- The allocator looks for a free block among those of the same stream and kind: requests of up to 1 MiB go to small
-- segments, others to large ones. Typical requests are those of the recorded alloc events, rounded as the allocator
-- rounds; of the active blocks where a device has no such event. Private pools are left out. Where a device has such and
-- its events do not say their pool, those requests count whose memory is of the default pool at the end.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id           BIGINT   devices.id.
-- @column device_index        BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column stream              BIGINT   Stream.
-- @column segment_type        VARCHAR  large or small.
-- @column free_bytes          BIGINT   Bytes in inactive blocks, without those that wait for a free all the same.
-- @column free_count          BIGINT   Those blocks.
-- @column largest_free_block  BIGINT   Bytes of the largest of them; 0 without one.
-- @column request_count       BIGINT   Requests.
-- @column median_request      BIGINT   Half of the requests are of so many bytes or fewer; NULL without a request.
-- @column p90_request         BIGINT   Nine of ten are of so many bytes or fewer; NULL without a request.
-- @column largest_request     BIGINT   Bytes of the largest; NULL without a request.
-- @column fits_median_bytes   BIGINT   Bytes in inactive blocks that a median request fits in; NULL without a request.
-- @column fits_p90_bytes      BIGINT   Bytes in inactive blocks that nine of ten requests fit in; NULL likewise.
-- @column requests_from       VARCHAR  events or blocks; NULL without a request.
WITH private_devices AS (
  SELECT DISTINCT device_id
  FROM _pool_segments
  WHERE pool_id_0 <> 0
    OR pool_id_1 <> 0
),
told_sizes AS (
  SELECT
    a.device_id AS device_id,
    a.stream AS stream,
    a.size AS size,
    COUNT(*) AS request_count
  FROM allocations AS a
  LEFT JOIN private_devices AS p
    ON p.device_id = a.device_id
  WHERE a.alloc_index IS NOT NULL
    AND COALESCE(a.pool_id_0, 0) = 0
    AND COALESCE(a.pool_id_1, 0) = 0
    AND (a.pool_id_0 IS NOT NULL OR p.device_id IS NULL)
  GROUP BY a.device_id, a.stream, a.size
),
untold_requests AS (
  SELECT
    a.device_id AS device_id,
    a.addr AS addr,
    a.stream AS stream,
    a.size AS size,
    COUNT(*) AS request_count
  FROM private_devices AS p
  JOIN allocations AS a
    ON a.device_id = p.device_id
  WHERE a.alloc_index IS NOT NULL
    AND a.pool_id_0 IS NULL
  GROUP BY a.device_id, a.addr, a.stream, a.size
),
-- Segments of the default pool and requests by address. As segments do not overlap, a request lies
-- in one of these if the furthest end of those that begin there or before is behind it.
places AS (
  SELECT
    s.device_id AS device_id,
    s.address AS address,
    0 AS rank,
    s.address + s.total_size AS segment_end,
    CAST(NULL AS BIGINT) AS stream,
    CAST(NULL AS BIGINT) AS size,
    0 AS request_count
  FROM private_devices AS p
  JOIN _pool_segments AS s
    ON s.device_id = p.device_id
  WHERE COALESCE(s.pool_id_0, 0) = 0
    AND COALESCE(s.pool_id_1, 0) = 0
  UNION ALL
  SELECT
    device_id,
    addr AS address,
    1 AS rank,
    CAST(NULL AS BIGINT) AS segment_end,
    stream,
    size,
    request_count
  FROM untold_requests
),
placed AS (
  SELECT
    device_id,
    address,
    rank,
    MAX(segment_end) OVER (
      PARTITION BY device_id
      ORDER BY address, rank
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS furthest_end,
    stream,
    size,
    request_count
  FROM places
),
untold_sizes AS (
  SELECT
    device_id,
    stream,
    size,
    SUM(request_count) AS request_count
  FROM placed
  WHERE rank = 1
    AND address < furthest_end
  GROUP BY device_id, stream, size
),
event_sizes AS (
  SELECT
    device_id,
    stream,
    size,
    request_count
  FROM told_sizes
  UNION ALL
  SELECT
    device_id,
    stream,
    size,
    request_count
  FROM untold_sizes
),
block_sizes AS (
  SELECT
    b.device_id AS device_id,
    s.stream AS stream,
    b.requested_size AS size,
    COUNT(*) AS request_count
  FROM _pool_blocks AS b
  JOIN _pool_segments AS s
    ON s.segment_id = b.segment_id
  WHERE b.requested_size IS NOT NULL
    AND COALESCE(s.pool_id_0, 0) = 0
    AND COALESCE(s.pool_id_1, 0) = 0
  GROUP BY b.device_id, s.stream, b.requested_size
),
requests AS (
  SELECT
    device_id,
    stream,
    size,
    request_count,
    'events' AS requests_from
  FROM event_sizes
  UNION ALL
  SELECT
    device_id,
    stream,
    size,
    request_count,
    'blocks' AS requests_from
  FROM block_sizes
),
-- A device with events has them from there alone: of the two words `events` is the later one.
known AS (
  SELECT
    device_id,
    stream,
    size,
    request_count,
    requests_from,
    MAX(requests_from) OVER (PARTITION BY device_id) AS best_from
  FROM requests
),
padded AS (
  SELECT
    r.device_id AS device_id,
    r.stream AS stream,
    r.size + k.padding AS size,
    r.request_count AS request_count,
    r.requests_from AS requests_from
  FROM _event_scale AS k
  JOIN known AS r
    ON r.device_id = k.device_id
  WHERE r.requests_from = r.best_from
),
rounded AS (
  SELECT
    p.device_id AS device_id,
    p.stream AS stream,
    (p.size + COALESCE(z.step_bytes, 512) - 1) / NULLIF(COALESCE(z.step_bytes, 512), 0)
      * COALESCE(z.step_bytes, 512) AS size,
    p.request_count AS request_count,
    p.requests_from AS requests_from
  FROM padded AS p
  LEFT JOIN _size_steps AS z
    ON p.size > z.above_size
    AND p.size < z.below_size
),
by_size AS (
  SELECT
    device_id,
    stream,
    size,
    SUM(request_count) AS request_count,
    MAX(requests_from) AS requests_from
  FROM rounded
  GROUP BY device_id, stream, size
),
kinds AS (
  SELECT
    device_id,
    stream,
    CASE WHEN size <= 1048576 THEN 'small' ELSE 'large' END AS segment_type,
    size,
    request_count,
    requests_from
  FROM by_size
),
running AS (
  SELECT
    device_id,
    stream,
    segment_type,
    size,
    requests_from,
    SUM(request_count) OVER (
      PARTITION BY device_id, stream, segment_type
      ORDER BY size
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS count_so_far,
    SUM(request_count) OVER (PARTITION BY device_id, stream, segment_type) AS request_count
  FROM kinds
),
typical AS (
  SELECT
    device_id,
    stream,
    segment_type,
    MAX(request_count) AS request_count,
    MIN(CASE WHEN count_so_far * 2 >= request_count THEN size END) AS median_request,
    MIN(CASE WHEN count_so_far * 10 >= request_count * 9 THEN size END) AS p90_request,
    MAX(size) AS largest_request,
    MAX(requests_from) AS requests_from
  FROM running
  GROUP BY device_id, stream, segment_type
),
holes AS (
  SELECT
    s.device_id AS device_id,
    s.stream AS stream,
    s.segment_type AS segment_type,
    CASE WHEN b.state = 'inactive' THEN b.size END AS size
  FROM _pool_segments AS s
  JOIN _actual_blocks AS b
    ON b.segment_id = s.segment_id
  WHERE COALESCE(s.pool_id_0, 0) = 0
    AND COALESCE(s.pool_id_1, 0) = 0
),
fitting AS (
  SELECT
    h.device_id AS device_id,
    h.stream AS stream,
    h.segment_type AS segment_type,
    COALESCE(SUM(h.size), 0) AS free_bytes,
    COUNT(h.size) AS free_count,
    COALESCE(MAX(h.size), 0) AS largest_free_block,
    MAX(t.request_count) AS request_count,
    MAX(t.median_request) AS median_request,
    MAX(t.p90_request) AS p90_request,
    MAX(t.largest_request) AS largest_request,
    SUM(CASE WHEN h.size >= t.median_request THEN h.size ELSE 0 END) AS fits_median_bytes,
    SUM(CASE WHEN h.size >= t.p90_request THEN h.size ELSE 0 END) AS fits_p90_bytes,
    MAX(t.requests_from) AS requests_from
  FROM holes AS h
  LEFT JOIN typical AS t
    ON t.device_id = h.device_id
    AND t.stream = h.stream
    AND t.segment_type = h.segment_type
  GROUP BY h.device_id, h.stream, h.segment_type
)
SELECT
  f.device_id AS device_id,
  d.device_index AS device_index,
  f.stream AS stream,
  f.segment_type AS segment_type,
  f.free_bytes AS free_bytes,
  f.free_count AS free_count,
  f.largest_free_block AS largest_free_block,
  COALESCE(f.request_count, 0) AS request_count,
  f.median_request AS median_request,
  f.p90_request AS p90_request,
  f.largest_request AS largest_request,
  CASE WHEN f.request_count > 0 THEN f.fits_median_bytes END AS fits_median_bytes,
  CASE WHEN f.request_count > 0 THEN f.fits_p90_bytes END AS fits_p90_bytes,
  f.requests_from AS requests_from
FROM fitting AS f
JOIN devices AS d
  ON d.id = f.device_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index, f.stream IS NULL, f.stream, f.segment_type IS NULL, f.segment_type
