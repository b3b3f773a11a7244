-- What changed between one growth of reserved memory and the next, by stream and kind of memory.
--
-- `expansion_causes` says what a kind is. Growths are few, so this is small, however many events there are.
--
-- @kept
--
-- @column device_id        BIGINT   devices.id.
-- @column stream           BIGINT   Stream of the events.
-- @column segment_type     VARCHAR  `small` or `large`.
-- @column growth_number    BIGINT   Growths of the device up to here, the one the span begins with included.
-- @column growth_index     BIGINT   Event of that growth; NULL where it was of another stream or kind.
-- @column grown_bytes      BIGINT   Its bytes.
-- @column next_index       BIGINT   First event behind it of this stream and kind; NULL without one.
-- @column alloc_index      BIGINT   First alloc of this stream and kind; NULL without one.
-- @column alloc_count      BIGINT   Allocs.
-- @column reserved_change  BIGINT   Bytes reserved minus bytes given back, the growth included.
-- @column active_change    BIGINT   Bytes allocated minus bytes whose free was completed.
-- @column pending_change   BIGINT   Bytes whose free was requested minus bytes whose free was completed.
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
    END AS segment_type,
    CASE WHEN action IN ('segment_alloc', 'segment_map') THEN 1 ELSE 0 END AS is_growth
  FROM traces
  WHERE is_workspace = 0
    AND size IS NOT NULL
    AND action IN ('alloc', 'free_requested', 'free_completed', 'segment_alloc', 'segment_map',
      'segment_free', 'segment_unmap')
),
-- Events are numbered by the growths of the device before them, in the order they stand; all that follows is about
-- sums between two growths, which are few.
numbered AS (
  SELECT
    device_id,
    trace_index,
    stream,
    action,
    size,
    segment_type,
    is_growth,
    SUM(is_growth) OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS growth_number
  FROM changes
)
SELECT
  device_id,
  stream,
  segment_type,
  growth_number,
  MIN(CASE WHEN is_growth = 1 THEN trace_index END) AS growth_index,
  SUM(CASE WHEN is_growth = 1 THEN size ELSE 0 END) AS grown_bytes,
  MIN(CASE WHEN is_growth = 0 THEN trace_index END) AS next_index,
  MIN(CASE WHEN action = 'alloc' THEN trace_index END) AS alloc_index,
  SUM(CASE WHEN action = 'alloc' THEN 1 ELSE 0 END) AS alloc_count,
  SUM(CASE
    WHEN is_growth = 1 THEN size
    WHEN action IN ('segment_free', 'segment_unmap') THEN -size
    ELSE 0
  END) AS reserved_change,
  SUM(CASE action WHEN 'alloc' THEN size WHEN 'free_completed' THEN -size ELSE 0 END)
    AS active_change,
  SUM(CASE action WHEN 'free_requested' THEN size WHEN 'free_completed' THEN -size ELSE 0 END)
    AS pending_change
FROM numbered
GROUP BY device_id, stream, segment_type, growth_number
