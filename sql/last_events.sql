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
WITH counted AS (
  SELECT
    device_id,
    slice_index,
    first_index,
    last_index,
    SUM(event_count) OVER (
      PARTITION BY device_id
      ORDER BY slice_index DESC
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) - event_count AS later_count
  FROM _memory_slices
),
-- Of the history only the slices are looked into that so many events reach back to.
reached AS (
  SELECT
    c.device_id AS device_id,
    d.device_index AS device_index,
    c.slice_index AS slice_index,
    c.first_index AS first_index,
    c.last_index AS last_index
  FROM counted AS c
  JOIN devices AS d
    ON d.id = c.device_id
  WHERE ($count IS NULL OR c.later_count < $count)
    AND ($device IS NULL OR d.device_index = $device)
),
numbered AS (
  SELECT
    r.device_id AS device_id,
    r.device_index AS device_index,
    CAST(ROW_NUMBER() OVER (
      PARTITION BY r.device_id
      ORDER BY t.trace_index DESC
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS BIGINT) AS position,
    t.trace_index AS trace_index,
    t.time_us AS time_us,
    t.action AS action,
    t.addr AS addr,
    t.size AS size,
    t.stream AS stream,
    t.stack_id AS stack_id
  FROM reached AS r
  JOIN traces AS t
    ON t.device_id = r.device_id
    AND t.trace_index / NULLIF((SELECT MAX(slice_width) FROM _scale), 0) = r.slice_index
    -- Says no more; but SQLite has an index on it.
    AND t.trace_index BETWEEN r.first_index AND r.last_index
  WHERE t.is_workspace = 0
)
SELECT
  n.device_id AS device_id,
  n.device_index AS device_index,
  n.position AS position,
  n.trace_index AS trace_index,
  n.time_us AS time_us,
  n.action AS action,
  n.addr AS addr,
  n.size AS size,
  n.stream AS stream,
  n.stack_id AS stack_id,
  k.frames_json AS frames_json
FROM numbered AS n
LEFT JOIN call_stacks AS k
  ON k.id = n.stack_id
WHERE ($count IS NULL OR n.position <= $count)
ORDER BY n.device_index, n.position
