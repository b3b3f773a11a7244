-- The history in spans that each begin with an event that adds reserved memory: what changed, by stream, pool and kind.
--
-- A span is what lies between two such events, so that what was free just before one is a sum over the spans before it.
-- Memory pools are kept apart where the events say theirs. Requests of up to 1 MiB are of kind small. Growth is of the
-- kind of the request right behind it; without one, more than 2 MiB is large, and so is what is given back. But mapped
-- memory of large kind comes and goes in pages, of 20 MiB unless the maps or the segments show another size: while
-- they do not, what is unmapped and no multiple of 20 MiB is small.
--
-- @kept
-- @column device_id        BIGINT   devices.id.
-- @column span             BIGINT   Number of the span; 0 is what lies before the first growth.
-- @column stream           BIGINT   Stream.
-- @column pool_id_0        BIGINT   First word of the memory pool's id; 0 also where the events do not say it.
-- @column pool_id_1        BIGINT   Second word; 0 likewise.
-- @column segment_type     VARCHAR  large or small.
-- @column tells_pool       BIGINT   1 on a device whose events say their pools, else 0.
-- @column trace_index      BIGINT   Event that added memory; NULL where another stream's or kind's did.
-- @column grown_bytes      BIGINT   Bytes it added; NULL likewise.
-- @column requested        BIGINT   Bytes of the alloc right behind it, rounded; NULL without one.
-- @column reserved_change  BIGINT   Change of the bytes reserved over the span.
-- @column active_change    BIGINT   Change of the bytes in blocks that are allocated or wait for a pending free.
-- @column pending_change   BIGINT   Change of the bytes in blocks that wait for a pending free.
WITH beside AS (
  SELECT
    device_id,
    trace_index,
    stream,
    pool_id_0,
    pool_id_1,
    action,
    size,
    reserved,
    allocated,
    active,
    SUM(CASE WHEN reserved > 0 THEN 1 ELSE 0 END) OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS span,
    LEAD(CASE WHEN allocated > 0 THEN allocated END) OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS next_request
  FROM _event_changes
  WHERE reserved <> 0
    OR allocated <> 0
    OR active <> 0
),
kinds AS (
  SELECT
    b.device_id AS device_id,
    b.span AS span,
    b.stream AS stream,
    COALESCE(b.pool_id_0, 0) AS pool_id_0,
    COALESCE(b.pool_id_1, 0) AS pool_id_1,
    CASE WHEN b.pool_id_0 IS NULL THEN 0 ELSE 1 END AS tells_pool,
    CASE
      WHEN b.reserved = 0
      THEN CASE WHEN b.size + k.padding <= 1048576 THEN 'small' ELSE 'large' END
      WHEN b.reserved > 0 AND b.next_request IS NOT NULL
      THEN CASE WHEN b.next_request <= 1048576 THEN 'small' ELSE 'large' END
      WHEN b.size <= 2097152 THEN 'small'
      WHEN b.action = 'segment_unmap' AND b.size % 20971520 <> 0 THEN 'by_page'
      ELSE 'large'
    END AS segment_type,
    CASE
      WHEN b.action = 'segment_map' AND b.next_request > 1048576 AND b.size % 20971520 <> 0 THEN 1
      ELSE 0
    END AS is_other_page,
    CASE WHEN b.reserved > 0 THEN b.trace_index END AS trace_index,
    CASE WHEN b.reserved > 0 THEN b.size END AS grown_bytes,
    CASE WHEN b.reserved > 0 THEN b.next_request END AS requested,
    b.reserved AS reserved_change,
    b.active + COALESCE(x.active, 0) AS active_change,
    b.active - b.allocated + COALESCE(x.active, 0) - COALESCE(x.allocated, 0) AS pending_change
  FROM _event_scale AS k
  JOIN beside AS b
    ON b.device_id = k.device_id
  LEFT JOIN _rounding_excess AS x
    ON x.device_id = b.device_id
    AND x.trace_index = b.trace_index
),
sums AS (
  SELECT
    device_id,
    span,
    stream,
    pool_id_0,
    pool_id_1,
    segment_type,
    MAX(tells_pool) AS tells_pool,
    MAX(is_other_page) AS is_other_page,
    MAX(trace_index) AS trace_index,
    MAX(grown_bytes) AS grown_bytes,
    MAX(requested) AS requested,
    SUM(reserved_change) AS reserved_change,
    SUM(active_change) AS active_change,
    SUM(pending_change) AS pending_change
  FROM kinds
  GROUP BY device_id, span, stream, pool_id_0, pool_id_1, segment_type
),
final_pages AS (
  SELECT
    device_id,
    MAX(CASE WHEN total_size % 20971520 <> 0 THEN 1 ELSE 0 END) AS is_other_page
  FROM _pool_segments
  WHERE is_expandable = 1
    AND segment_type = 'large'
  GROUP BY device_id
),
told AS (
  SELECT
    s.device_id AS device_id,
    s.span AS span,
    s.stream AS stream,
    s.pool_id_0 AS pool_id_0,
    s.pool_id_1 AS pool_id_1,
    s.segment_type AS segment_type,
    MAX(s.tells_pool) OVER (PARTITION BY s.device_id) AS tells_pool,
    MAX(s.is_other_page) OVER (PARTITION BY s.device_id) AS map_is_other_page,
    f.is_other_page AS final_is_other_page,
    s.trace_index AS trace_index,
    s.grown_bytes AS grown_bytes,
    s.requested AS requested,
    s.reserved_change AS reserved_change,
    s.active_change AS active_change,
    s.pending_change AS pending_change
  FROM sums AS s
  LEFT JOIN final_pages AS f
    ON f.device_id = s.device_id
),
settled AS (
  SELECT
    device_id,
    span,
    stream,
    pool_id_0,
    pool_id_1,
    CASE
      WHEN segment_type <> 'by_page' THEN segment_type
      WHEN map_is_other_page = 1 OR final_is_other_page = 1 THEN 'large'
      ELSE 'small'
    END AS segment_type,
    tells_pool,
    trace_index,
    grown_bytes,
    requested,
    reserved_change,
    active_change,
    pending_change
  FROM told
)
SELECT
  device_id,
  span,
  stream,
  pool_id_0,
  pool_id_1,
  segment_type,
  MAX(tells_pool) AS tells_pool,
  MAX(trace_index) AS trace_index,
  MAX(grown_bytes) AS grown_bytes,
  MAX(requested) AS requested,
  SUM(reserved_change) AS reserved_change,
  SUM(active_change) AS active_change,
  SUM(pending_change) AS pending_change
FROM settled
GROUP BY device_id, span, stream, pool_id_0, pool_id_1, segment_type
