-- Who held memory when a request failed, and who had grown last: call stacks by what they had allocated lately.
--
-- Counts what was in use at the out-of-memory event, by the stack of its allocation.
--
-- @param recent  BIGINT = 1000  Lately: in so many events before the failure.
-- @param limit   BIGINT = 10    Stacks of each failure; NULL for all.
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
-- @param newest  BIGINT = 16    Of a device's out-of-memory events, only the newest; NULL for all.
--
-- @column device_id     BIGINT   devices.id.
-- @column device_index  BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column oom_index     BIGINT   trace_index of the out-of-memory event.
-- @column stack_id      BIGINT   call_stacks.id; NULL for all allocations of which no stack was recorded.
-- @column recent_bytes  BIGINT   Bytes in use that were allocated lately, rounding included.
-- @column recent_count  BIGINT   Those allocations.
-- @column live_bytes    BIGINT   Bytes in use, whenever they were allocated.
-- @column live_count    BIGINT   Those allocations.
-- @column last_index    BIGINT   trace_index of the newest of those allocations; NULL where all are older than the
--   events.
-- @column frames_json   VARCHAR  The stack's frames as JSON, innermost first; NULL without a stack.
WITH failures AS (
  SELECT
    e.device_id AS device_id,
    d.device_index AS device_index,
    e.trace_index AS trace_index
  FROM _oom_events AS e
  JOIN devices AS d
    ON d.id = e.device_id
  WHERE ($newest IS NULL OR e.newest <= $newest)
    AND ($device IS NULL OR d.device_index = $device)
),
lived AS (
  SELECT
    f.device_id AS device_id,
    f.device_index AS device_index,
    f.trace_index AS oom_index,
    a.stack_id AS stack_id,
    a.block_size AS size,
    a.alloc_index AS alloc_index,
    CASE WHEN a.alloc_index >= f.trace_index - $recent THEN 1 ELSE 0 END AS is_recent
  FROM failures AS f
  JOIN _sized_allocations AS a
    ON a.device_id = f.device_id
  WHERE (a.alloc_index IS NULL OR a.alloc_index <= f.trace_index)
    AND (a.allocated_until IS NULL OR a.allocated_until > f.trace_index)
),
by_stack AS (
  SELECT
    device_id,
    device_index,
    oom_index,
    stack_id,
    SUM(CASE WHEN is_recent = 1 THEN size ELSE 0 END) AS recent_bytes,
    SUM(is_recent) AS recent_count,
    SUM(size) AS live_bytes,
    COUNT(*) AS live_count,
    MAX(alloc_index) AS last_index
  FROM lived
  GROUP BY device_id, device_index, oom_index, stack_id
),
ranked AS (
  SELECT
    device_id,
    device_index,
    oom_index,
    stack_id,
    recent_bytes,
    recent_count,
    live_bytes,
    live_count,
    last_index,
    CAST(ROW_NUMBER() OVER (
      PARTITION BY device_id, oom_index
      ORDER BY recent_bytes DESC, live_bytes DESC, stack_id IS NULL, stack_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS BIGINT) AS position
  FROM by_stack
)
SELECT
  r.device_id AS device_id,
  r.device_index AS device_index,
  r.oom_index AS oom_index,
  r.stack_id AS stack_id,
  r.recent_bytes AS recent_bytes,
  r.recent_count AS recent_count,
  r.live_bytes AS live_bytes,
  r.live_count AS live_count,
  r.last_index AS last_index,
  k.frames_json AS frames_json
FROM ranked AS r
LEFT JOIN call_stacks AS k
  ON k.id = r.stack_id
WHERE ($limit IS NULL OR r.position <= $limit)
ORDER BY r.device_index, r.oom_index, r.position
