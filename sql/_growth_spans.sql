-- The history in spans, each beginning with an event that adds reserved memory: what changed in each, by stream and kind.
--
-- A span is what lies between two such events, so that what was free just before one is a sum over the spans before it.
-- Only slices with such an event, and those behind them, are looked into; others lie within one span as a whole.
--
-- @kept
-- @column device_id        BIGINT   devices.id.
-- @column span             BIGINT   trace_index of the event the span begins with; -1 for what lies before the first growth.
-- @column stream           BIGINT   Stream.
-- @column segment_type     VARCHAR  large or small.
-- @column trace_index      BIGINT   Event that added memory; NULL where another stream's or kind's did.
-- @column grown_bytes      BIGINT   Bytes it added; NULL likewise.
-- @column requested        BIGINT   Bytes of the alloc right behind it, rounded; NULL without one.
-- @column reserved_change  BIGINT   Change of the bytes reserved over the span.
-- @column active_change    BIGINT   Change of the bytes in blocks that are allocated or wait for a pending free.
-- @column pending_change   BIGINT   Change of the bytes in blocks that wait for a pending free.
WITH growths AS (
  SELECT
    device_id,
    trace_index / NULLIF((SELECT MAX(slice_width) FROM _scale), 0) AS slice_index,
    trace_index
  FROM _segment_events
  WHERE is_growth = 1
    AND size > 0
),
last_growths AS (
  SELECT
    device_id,
    slice_index,
    MAX(trace_index) AS last_growth
  FROM growths
  GROUP BY device_id, slice_index
),
slices AS (
  SELECT
    device_id,
    slice_index
  FROM _stream_slices
  GROUP BY device_id, slice_index
  HAVING SUM(event_count) > SUM(mark_count)
),
-- A span is called by the event it begins with.
slice_spans AS (
  SELECT
    s.device_id AS device_id,
    s.slice_index AS slice_index,
    COUNT(g.last_growth) OVER (
      PARTITION BY s.device_id
      ORDER BY s.slice_index
      ROWS BETWEEN 1 PRECEDING AND CURRENT ROW
    ) AS close_count,
    MAX(g.last_growth) OVER (
      PARTITION BY s.device_id
      ORDER BY s.slice_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS span
  FROM slices AS s
  LEFT JOIN last_growths AS g
    ON g.device_id = s.device_id
    AND g.slice_index = s.slice_index
),
beside AS (
  SELECT
    e.device_id AS device_id,
    e.trace_index AS trace_index,
    e.stream AS stream,
    e.is_small AS is_small,
    e.size AS size,
    e.reserved AS reserved,
    e.allocated AS allocated,
    e.active AS active,
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
  FROM slice_spans AS s
  JOIN _event_changes AS e
    ON e.device_id = s.device_id
    AND e.slice_index = s.slice_index
  WHERE s.close_count > 0
    -- No mark; said of both sides, so that it is asked of these slices' events and not of all.
    AND e.is_mark * s.close_count = 0
),
parts AS (
  SELECT
    b.device_id AS device_id,
    b.span AS span,
    b.stream AS stream,
    b.is_small AS is_small,
    CASE WHEN b.reserved > 0 THEN b.trace_index END AS trace_index,
    CASE WHEN b.reserved > 0 THEN b.size END AS grown_bytes,
    CASE WHEN b.reserved > 0 THEN b.next_request END AS requested,
    b.reserved AS reserved_change,
    b.active + COALESCE(x.active, 0) AS active_change,
    b.active - b.allocated + COALESCE(x.active, 0) - COALESCE(x.allocated, 0) AS pending_change
  FROM beside AS b
  LEFT JOIN _rounding_excess AS x
    ON x.device_id = b.device_id
    AND x.trace_index = b.trace_index
  UNION ALL
  SELECT
    c.device_id AS device_id,
    s.span AS span,
    c.stream AS stream,
    c.is_small AS is_small,
    CAST(NULL AS BIGINT) AS trace_index,
    CAST(NULL AS BIGINT) AS grown_bytes,
    CAST(NULL AS BIGINT) AS requested,
    c.reserved_change AS reserved_change,
    c.active_change AS active_change,
    c.active_change - c.allocated_change AS pending_change
  FROM slice_spans AS s
  JOIN _stream_slices AS c
    ON c.device_id = s.device_id
    AND c.slice_index = s.slice_index
  WHERE s.close_count = 0
    AND (c.event_count > c.mark_count OR c.event_count = 0)
)
SELECT
  device_id,
  COALESCE(span, -1) AS span,
  stream,
  CASE is_small WHEN 1 THEN 'small' ELSE 'large' END AS segment_type,
  MAX(trace_index) AS trace_index,
  MAX(grown_bytes) AS grown_bytes,
  MAX(requested) AS requested,
  SUM(reserved_change) AS reserved_change,
  SUM(active_change) AS active_change,
  SUM(pending_change) AS pending_change
FROM parts
GROUP BY device_id, COALESCE(span, -1), stream, is_small
