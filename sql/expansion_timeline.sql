-- When reserved memory grew and shrank: the segment events of every device, oldest first, with their running sum.
--
-- net_size starts at 0 with the recording: it is the change since then, not the level. The order of time is
-- trace_index. Entries of the NPU's workspace allocator are left out: they are no events.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
-- @param limit   BIGINT = NULL  Only the first rows; NULL for all.
--
-- @column device_id     BIGINT   devices.id.
-- @column device_index  BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column trace_index   BIGINT   Position of the event in the device's history.
-- @column time_us       BIGINT   Microseconds since the Unix epoch; NULL without a clock.
-- @column action        VARCHAR  segment_alloc, segment_map, segment_free or segment_unmap.
-- @column addr          BIGINT   Start address.
-- @column size          BIGINT   Bytes of the event.
-- @column net_size      BIGINT   Bytes reserved minus bytes given back, since the recording began, this event included.
-- @column net_segments  BIGINT   segment_alloc minus segment_free events, likewise. Mapping changes no count: it grows
--   or shrinks an expandable segment.
-- @column stack_id      BIGINT   Call stack of the event: call_stacks.id; NULL where none was recorded.
WITH changes AS (
  SELECT
    device_id,
    trace_index,
    time_us,
    action,
    addr,
    size,
    CASE WHEN action IN ('segment_alloc', 'segment_map') THEN size ELSE -size END AS size_change,
    CASE action WHEN 'segment_alloc' THEN 1 WHEN 'segment_free' THEN -1 ELSE 0 END
      AS segment_change,
    stack_id
  FROM traces
  WHERE is_workspace = 0
    AND action IN ('segment_alloc', 'segment_map', 'segment_free', 'segment_unmap')
),
running AS (
  SELECT
    device_id,
    trace_index,
    time_us,
    action,
    addr,
    size,
    SUM(size_change) OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS net_size,
    SUM(segment_change) OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS net_segments,
    stack_id
  FROM changes
)
SELECT
  r.device_id AS device_id,
  d.device_index AS device_index,
  r.trace_index AS trace_index,
  r.time_us AS time_us,
  r.action AS action,
  r.addr AS addr,
  r.size AS size,
  r.net_size AS net_size,
  r.net_segments AS net_segments,
  r.stack_id AS stack_id
FROM running AS r
JOIN devices AS d
  ON d.id = r.device_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index, r.trace_index
LIMIT $limit
