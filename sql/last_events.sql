-- The newest events of every device, newest first: what happened before the dump.
--
-- Entries of the workspace allocator are left out: they are no events.
--
-- @param count   BIGINT = 50    Events of each device; NULL for all.
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id     BIGINT   devices.id.
-- @column device_index  BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column position      BIGINT   1 for the newest.
-- @column trace_index   BIGINT   Position of the event in the device's history.
-- @column time_us       BIGINT   Microseconds since the Unix epoch; NULL without a clock.
-- @column action        VARCHAR  What was done.
-- @column addr          BIGINT   Address; NULL where the event has none.
-- @column size          BIGINT   Bytes.
-- @column stream        BIGINT   Stream.
-- @column stack_id      BIGINT   Call stack of the event: call_stacks.id; NULL where none was recorded.
-- @column frames_json   VARCHAR  Its frames as JSON, innermost first; NULL without a stack.
WITH totals AS (
  SELECT
    device_id,
    COUNT(*) AS event_count
  FROM traces
  WHERE is_workspace = 0
  GROUP BY device_id
),
numbered AS (
  SELECT
    device_id,
    trace_index,
    time_us,
    action,
    addr,
    size,
    stream,
    stack_id,
    CAST(ROW_NUMBER() OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS BIGINT) AS event_number
  FROM traces
  WHERE is_workspace = 0
)
SELECT
  n.device_id AS device_id,
  d.device_index AS device_index,
  t.event_count - n.event_number + 1 AS position,
  n.trace_index AS trace_index,
  n.time_us AS time_us,
  n.action AS action,
  n.addr AS addr,
  n.size AS size,
  n.stream AS stream,
  n.stack_id AS stack_id,
  k.frames_json AS frames_json
FROM numbered AS n
JOIN totals AS t
  ON t.device_id = n.device_id
JOIN devices AS d
  ON d.id = n.device_id
LEFT JOIN call_stacks AS k
  ON k.id = n.stack_id
WHERE ($count IS NULL OR t.event_count - n.event_number < $count)
  AND ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index, n.event_number DESC
