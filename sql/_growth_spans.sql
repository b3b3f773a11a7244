-- The history in spans that each begin with an event that adds reserved memory: what changed, by stream, pool and kind.
--
-- A span is what lies between two such events, so that what was free just before one is a sum over the spans before it.
-- Memory pools are kept apart where the events say theirs. Requests of up to 1 MiB are of kind small. Growth is of the
-- kind of the request right behind it; without one, more than 2 MiB is large, and so is what is given back. But memory
-- of large kind is mapped in pages of 20 MiB, unless maps or segments of other sizes show that it is not: while none
-- does, what is unmapped and no multiple of 20 MiB is small.
--
-- @kept
-- @column device_id        BIGINT   devices.id.
-- @column span             BIGINT   Number of the span; 0 is what lies before the first growth.
-- @column stream           BIGINT   Stream.
-- @column pool_id_0        BIGINT   First word of the memory pool's id; 0 also where the events do not say it.
-- @column pool_id_1        BIGINT   Second word; 0 likewise.
-- @column segment_type     VARCHAR  large or small.
-- @column tells_pool       BIGINT   1 where an event says its pool, else 0.
-- @column trace_index      BIGINT   Event that added memory; NULL where another stream's or kind's did.
-- @column grown_bytes      BIGINT   Bytes it added; NULL likewise.
-- @column requested        BIGINT   Bytes of the alloc right behind it, rounded; NULL without one.
-- @column reserved_change  BIGINT   Change of the bytes reserved over the span.
-- @column active_change    BIGINT   Change of the bytes in blocks that are allocated or wait for a pending free.
-- @column pending_change   BIGINT   Change of the bytes in blocks that wait for a pending free.
WITH other_pages AS (
  SELECT device_id
  FROM _segment_events
  WHERE action = 'segment_map'
    AND size > 2097152
    AND size % 20971520 <> 0
  UNION
  SELECT device_id
  FROM _pool_segments
  WHERE is_expandable = 1
    AND segment_type = 'large'
    AND total_size % 20971520 <> 0
),
scales AS (
  SELECT
    k.device_id AS device_id,
    k.padding AS padding,
    CASE WHEN o.device_id IS NULL THEN 0 ELSE 1 END AS has_other_pages
  FROM _event_scale AS k
  LEFT JOIN other_pages AS o
    ON o.device_id = k.device_id
),
beside AS (
  SELECT
    e.device_id AS device_id,
    e.trace_index AS trace_index,
    e.stream AS stream,
    e.pool_id_0 AS pool_id_0,
    e.pool_id_1 AS pool_id_1,
    e.action AS action,
    e.size AS size,
    e.reserved AS reserved,
    e.active + COALESCE(x.active, 0) AS active_change,
    e.active - e.allocated + COALESCE(x.active, 0) - COALESCE(x.allocated, 0) AS pending_change,
    SUM(CASE WHEN e.reserved > 0 THEN 1 ELSE 0 END) OVER (
      PARTITION BY e.device_id
      ORDER BY e.trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS span,
    LEAD(CASE WHEN e.allocated > 0 THEN e.allocated END) OVER (
      PARTITION BY e.device_id
      ORDER BY e.trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS next_request
  -- Joined before the windows: how much comes out of them the planner does not know.
  FROM _event_changes AS e
  LEFT JOIN _rounding_excess AS x
    ON x.device_id = e.device_id
    AND x.trace_index = e.trace_index
  -- The last says no more; but with it the planner asks behind the join, whose sides it then knows.
  WHERE e.reserved <> 0
    OR e.allocated <> 0
    OR e.active <> 0
    OR x.active <> 0
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
      WHEN b.action = 'segment_unmap' AND b.size % 20971520 <> 0 AND k.has_other_pages = 0
      THEN 'small'
      ELSE 'large'
    END AS segment_type,
    CASE WHEN b.reserved > 0 THEN b.trace_index END AS trace_index,
    CASE WHEN b.reserved > 0 THEN b.size END AS grown_bytes,
    CASE WHEN b.reserved > 0 THEN b.next_request END AS requested,
    b.reserved AS reserved_change,
    b.active_change AS active_change,
    b.pending_change AS pending_change
  FROM scales AS k
  JOIN beside AS b
    ON b.device_id = k.device_id
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
FROM kinds
GROUP BY device_id, span, stream, pool_id_0, pool_id_1, segment_type
