-- What the allocator did before each out-of-memory event, newest first.
--
-- Entries of the workspace allocator are left out: they are no events.
--
-- @param count   BIGINT = 50    Events before each; NULL for all.
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
-- @param newest  BIGINT = 16    Of a device's out-of-memory events, only the newest; NULL for all.
--
-- @column device_id     BIGINT   devices.id.
-- @column device_index  BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column oom_index     BIGINT   trace_index of the out-of-memory event.
-- @column position      BIGINT   1 for the event just before it.
-- @column trace_index   BIGINT   Position of the event in the device's history.
-- @column time_us       BIGINT   Microseconds since the Unix epoch; NULL without a clock.
-- @column action        VARCHAR  What was done.
-- @column addr          BIGINT   Address; NULL where the event has none.
-- @column size          BIGINT   Bytes.
-- @column stream        BIGINT   Stream.
-- @column stack_id      BIGINT   Call stack of the event: call_stacks.id; NULL where none was recorded.
-- @column frames_json   VARCHAR  Its frames as JSON, innermost first; NULL without a stack.
WITH numbered AS (
  SELECT
    device_id,
    trace_index,
    ROW_NUMBER() OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS event_number
  FROM traces
  WHERE is_workspace = 0
),
failures AS (
  SELECT
    n.device_id AS device_id,
    n.trace_index AS trace_index,
    n.event_number AS event_number
  FROM _oom_events AS e
  JOIN numbered AS n
    ON n.device_id = e.device_id
    AND n.trace_index = e.trace_index
  WHERE ($newest IS NULL OR e.newest <= $newest)
),
-- Only the few that are shown fetch their texts.
before_each AS (
  SELECT
    f.device_id AS device_id,
    f.trace_index AS oom_index,
    n.trace_index AS trace_index,
    CAST(f.event_number - n.event_number AS BIGINT) AS position
  FROM failures AS f
  JOIN numbered AS n
    ON n.device_id = f.device_id
  WHERE n.event_number < f.event_number
    AND ($count IS NULL OR n.event_number >= f.event_number - $count)
)
SELECT
  b.device_id AS device_id,
  d.device_index AS device_index,
  b.oom_index AS oom_index,
  b.position AS position,
  t.trace_index AS trace_index,
  t.time_us AS time_us,
  t.action AS action,
  t.addr AS addr,
  t.size AS size,
  t.stream AS stream,
  t.stack_id AS stack_id,
  k.frames_json AS frames_json
FROM before_each AS b
JOIN traces AS t
  ON t.device_id = b.device_id
  AND t.trace_index = b.trace_index
JOIN devices AS d
  ON d.id = b.device_id
LEFT JOIN call_stacks AS k
  ON k.id = t.stack_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index, b.oom_index, b.position
