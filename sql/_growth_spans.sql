-- The history in spans, each beginning with an event that adds reserved memory: what changed in each, by stream and kind.
--
-- A span is what lies between two such events, so that what was free just before one is a sum over the spans before it.
-- Requests of up to 1 MiB are of kind small. Kinds of segment events are told by their size: 2 MiB, or for mapped
-- ranges no multiple of 20 MiB, is small.
--
-- @kept
-- @column device_id        BIGINT   devices.id.
-- @column span             BIGINT   Number of the span; 0 is what lies before the first growth.
-- @column stream           BIGINT   Stream.
-- @column segment_type     VARCHAR  large or small.
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
  WHERE is_mark = 0
),
kinds AS (
  SELECT
    b.device_id AS device_id,
    b.span AS span,
    b.stream AS stream,
    CASE
      WHEN b.reserved = 0
      THEN CASE WHEN b.size + k.padding <= 1048576 THEN 'small' ELSE 'large' END
      WHEN b.action IN ('segment_alloc', 'segment_free')
      THEN CASE WHEN b.size <= 2097152 THEN 'small' ELSE 'large' END
      WHEN b.size % 20971520 = 0 THEN 'large'
      ELSE 'small'
    END AS segment_type,
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
)
SELECT
  device_id,
  span,
  stream,
  segment_type,
  MAX(trace_index) AS trace_index,
  MAX(grown_bytes) AS grown_bytes,
  MAX(requested) AS requested,
  SUM(reserved_change) AS reserved_change,
  SUM(active_change) AS active_change,
  SUM(pending_change) AS pending_change
FROM kinds
GROUP BY device_id, span, stream, segment_type
