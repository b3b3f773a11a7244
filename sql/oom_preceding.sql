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
WITH counted AS (
  SELECT
    device_id,
    slice_index,
    first_index,
    last_index,
    SUM(event_count) OVER (
      PARTITION BY device_id
      ORDER BY slice_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS count_so_far,
    event_count
  FROM _memory_slices
),
failures AS (
  SELECT
    e.device_id AS device_id,
    e.trace_index AS oom_index,
    c.slice_index AS slice_index,
    c.count_so_far - c.event_count AS count_before
  FROM _oom_events AS e
  JOIN devices AS d
    ON d.id = e.device_id
  -- A cross join tells SQLite to begin with the few rows.
  CROSS JOIN counted AS c
  WHERE c.device_id = e.device_id
    AND c.slice_index = e.trace_index / NULLIF((SELECT MAX(slice_width) FROM _scale), 0)
    AND ($newest IS NULL OR e.newest <= $newest)
    AND ($device IS NULL OR d.device_index = $device)
),
-- Of the history only the slices are looked into that so many events reach back to.
reached AS (
  SELECT
    f.device_id AS device_id,
    f.oom_index AS oom_index,
    c.slice_index AS slice_index,
    c.first_index AS first_index,
    c.last_index AS last_index
  FROM failures AS f
  CROSS JOIN counted AS c
  WHERE c.device_id = f.device_id
    AND c.slice_index <= f.slice_index
    AND ($count IS NULL OR c.count_so_far > f.count_before - $count)
),
earlier AS (
  SELECT
    r.device_id AS device_id,
    r.oom_index AS oom_index,
    CAST(ROW_NUMBER() OVER (
      PARTITION BY r.device_id, r.oom_index
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
    AND t.trace_index < r.oom_index
)
SELECT
  e.device_id AS device_id,
  d.device_index AS device_index,
  e.oom_index AS oom_index,
  e.position AS position,
  e.trace_index AS trace_index,
  e.time_us AS time_us,
  e.action AS action,
  e.addr AS addr,
  e.size AS size,
  e.stream AS stream,
  e.stack_id AS stack_id,
  k.frames_json AS frames_json
FROM earlier AS e
JOIN devices AS d
  ON d.id = e.device_id
LEFT JOIN call_stacks AS k
  ON k.id = e.stack_id
WHERE ($count IS NULL OR e.position <= $count)
ORDER BY d.device_index, e.oom_index, e.position
