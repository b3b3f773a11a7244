-- The history in spans that each begin with an event that adds reserved memory: what changed, by stream, pool and kind.
--
-- A span is what lies between two such events, so that what was free just before one is a sum over the spans before it.
-- Only slices with such an event, and those behind them, are looked into; others lie within one span as a whole. Memory
-- pools are kept apart where the events say theirs. Requests of up to 1 MiB are of kind small. Growth is of the kind of
-- the request right behind it; without one, more than 2 MiB is large, and so is what is given back. But memory of large
-- kind is mapped in pages of 20 MiB, unless maps or segments of other sizes show that it is not: while none does, what
-- is unmapped and no multiple of 20 MiB is small.
--
-- @kept
-- @column device_id        BIGINT   devices.id.
-- @column span             BIGINT   trace_index of the event it begins with; -1 for what lies before the first growth.
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
WITH beside AS (
  SELECT
    e.device_id AS device_id,
    s.has_other_pages AS has_other_pages,
    s.tells_pool AS tells_pool,
    e.trace_index AS trace_index,
    e.stream AS stream,
    e.pool_id_0 AS pool_id_0,
    e.pool_id_1 AS pool_id_1,
    e.action AS action,
    e.size AS size,
    e.is_small AS is_small,
    e.reserved AS reserved,
    e.active AS active_change,
    e.active - e.allocated AS pending_change,
    MAX(CASE WHEN e.reserved > 0 THEN e.trace_index END) OVER (
      PARTITION BY e.device_id
      ORDER BY e.trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS span,
    LEAD(CASE WHEN e.allocated > 0 THEN e.allocated END) OVER (
      PARTITION BY e.device_id
      ORDER BY e.trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS next_request
  FROM _growth_slices AS s
  JOIN _event_changes AS e
    ON e.device_id = s.device_id
    AND e.slice_index = s.slice_index
    -- Says no more; but SQLite has an index on it.
    AND e.trace_index BETWEEN s.first_index AND s.last_index
  WHERE s.is_close = 1
    -- It is never NULL; but a condition on events alone would work out twice what each of the
    -- history changes.
    AND (e.reserved <> 0 OR e.allocated <> 0 OR e.active <> 0 OR s.tells_pool IS NULL)
),
-- What the rule of a block's size lacks is no event here: put beside millions of them it would cost
-- them their order.
corrections AS (
  SELECT
    device_id,
    trace_index,
    trace_index AS growth,
    CAST(NULL AS BIGINT) AS tells_pool,
    CAST(NULL AS BIGINT) AS stream,
    CAST(NULL AS BIGINT) AS pool_id_0,
    CAST(NULL AS BIGINT) AS pool_id_1,
    CAST(NULL AS BIGINT) AS is_small,
    CAST(NULL AS BIGINT) AS allocated,
    CAST(NULL AS BIGINT) AS active
  FROM _segment_events
  WHERE is_growth = 1
    AND size > 0
  UNION ALL
  SELECT
    x.device_id AS device_id,
    x.trace_index AS trace_index,
    CAST(NULL AS BIGINT) AS growth,
    s.tells_pool AS tells_pool,
    x.stream AS stream,
    x.pool_id_0 AS pool_id_0,
    x.pool_id_1 AS pool_id_1,
    x.is_small AS is_small,
    x.allocated AS allocated,
    x.active AS active
  FROM _growth_slices AS s
  JOIN _rounding_excess AS x
    ON x.device_id = s.device_id
    AND x.slice_index = s.slice_index
  WHERE s.is_close = 1
),
corrected AS (
  SELECT
    device_id,
    MAX(growth) OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS span,
    growth,
    tells_pool,
    stream,
    pool_id_0,
    pool_id_1,
    is_small,
    allocated,
    active
  FROM corrections
),
-- Of what was given back, the size tells the kind; of blocks, the sums are known by kind.
sums AS (
  SELECT
    device_id,
    slice_index,
    stream,
    pool_id_0,
    pool_id_1,
    action,
    size,
    0 AS is_small,
    -size AS reserved,
    0 AS active_change,
    0 AS pending_change
  FROM _segment_events
  WHERE is_growth = 0
    AND size <> 0
  UNION ALL
  SELECT
    device_id,
    slice_index,
    stream,
    pool_id_0,
    pool_id_1,
    CAST(NULL AS VARCHAR) AS action,
    CAST(NULL AS BIGINT) AS size,
    is_small,
    0 AS reserved,
    active_change,
    active_change - allocated_change AS pending_change
  FROM _slice_changes
  WHERE allocated_rise <> 0
    OR allocated_change <> 0
    OR active_change <> 0
),
parts AS (
  SELECT
    device_id,
    has_other_pages,
    tells_pool,
    span,
    stream,
    pool_id_0,
    pool_id_1,
    action,
    size,
    is_small,
    trace_index,
    next_request,
    reserved,
    active_change,
    pending_change
  FROM beside
  UNION ALL
  SELECT
    device_id,
    0 AS has_other_pages,
    tells_pool,
    span,
    stream,
    pool_id_0,
    pool_id_1,
    CAST(NULL AS VARCHAR) AS action,
    CAST(NULL AS BIGINT) AS size,
    is_small,
    CAST(NULL AS BIGINT) AS trace_index,
    CAST(NULL AS BIGINT) AS next_request,
    0 AS reserved,
    active AS active_change,
    active - allocated AS pending_change
  FROM corrected
  WHERE growth IS NULL
  UNION ALL
  SELECT
    s.device_id AS device_id,
    s.has_other_pages AS has_other_pages,
    s.tells_pool AS tells_pool,
    s.last_growth AS span,
    c.stream AS stream,
    c.pool_id_0 AS pool_id_0,
    c.pool_id_1 AS pool_id_1,
    c.action AS action,
    c.size AS size,
    c.is_small AS is_small,
    CAST(NULL AS BIGINT) AS trace_index,
    CAST(NULL AS BIGINT) AS next_request,
    c.reserved AS reserved,
    c.active_change AS active_change,
    c.pending_change AS pending_change
  FROM _growth_slices AS s
  JOIN sums AS c
    ON c.device_id = s.device_id
    AND c.slice_index = s.slice_index
  WHERE s.is_close = 0
),
kinds AS (
  SELECT
    device_id,
    COALESCE(span, -1) AS span,
    stream,
    CASE tells_pool WHEN 1 THEN COALESCE(pool_id_0, 0) ELSE 0 END AS pool_id_0,
    CASE tells_pool WHEN 1 THEN COALESCE(pool_id_1, 0) ELSE 0 END AS pool_id_1,
    tells_pool,
    CASE
      WHEN reserved = 0 THEN CASE is_small WHEN 1 THEN 'small' ELSE 'large' END
      WHEN reserved > 0 AND next_request IS NOT NULL
      THEN CASE WHEN next_request <= 1048576 THEN 'small' ELSE 'large' END
      WHEN size <= 2097152 THEN 'small'
      WHEN action = 'segment_unmap' AND size % 20971520 <> 0 AND has_other_pages = 0
      THEN 'small'
      ELSE 'large'
    END AS segment_type,
    CASE WHEN reserved > 0 THEN trace_index END AS trace_index,
    CASE WHEN reserved > 0 THEN size END AS grown_bytes,
    CASE WHEN reserved > 0 THEN next_request END AS requested,
    reserved AS reserved_change,
    active_change,
    pending_change
  FROM parts
),
spans AS (
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
)
-- Steps of a setting are multiples of 512 bytes, which a request has been rounded to: rounding it
-- once more ends where the request itself would.
SELECT
  s.device_id AS device_id,
  s.span AS span,
  s.stream AS stream,
  s.pool_id_0 AS pool_id_0,
  s.pool_id_1 AS pool_id_1,
  s.segment_type AS segment_type,
  s.tells_pool AS tells_pool,
  s.trace_index AS trace_index,
  s.grown_bytes AS grown_bytes,
  (s.requested + COALESCE(z.step_bytes, 512) - 1) / NULLIF(COALESCE(z.step_bytes, 512), 0)
    * COALESCE(z.step_bytes, 512) AS requested,
  s.reserved_change AS reserved_change,
  s.active_change AS active_change,
  s.pending_change AS pending_change
FROM spans AS s
LEFT JOIN _size_steps AS z
  ON s.requested > z.above_size
  AND s.requested < z.below_size
