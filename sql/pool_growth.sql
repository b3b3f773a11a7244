-- The segment events of every device in few rows: of each stretch of its events the largest, oldest first.
--
-- It is expansion_timeline for the eye: with no more events than points, every one is there.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
-- @param points  BIGINT = 1500  Rows of each device, at most.
--
-- @column device_id     BIGINT   devices.id.
-- @column device_index   BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column trace_index    BIGINT   Position of the event in the device's history.
-- @column time_us        BIGINT   Microseconds since the Unix epoch; NULL without a clock.
-- @column action         VARCHAR  segment_alloc, segment_map, segment_free or segment_unmap.
-- @column size           BIGINT   Bytes of the event.
-- @column net_size       BIGINT   Bytes reserved minus bytes given back, since the recording began, this event included.
-- @column net_segments   BIGINT   segment_alloc minus segment_free events, likewise.
-- @column stack_id       BIGINT   call_stacks.id; NULL where none was recorded.
-- @column event_count    BIGINT   Segment events of the device.
WITH counts AS (
  SELECT
    device_id,
    COUNT(*) AS event_count
  FROM expansion_timeline
  GROUP BY device_id
),
numbered AS (
  SELECT
    device_id,
    device_index,
    trace_index,
    time_us,
    action,
    size,
    net_size,
    net_segments,
    stack_id,
    CAST(ROW_NUMBER() OVER (
      PARTITION BY device_id
      ORDER BY trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS BIGINT) - 1 AS position
  FROM expansion_timeline
),
stretched AS (
  SELECT
    n.device_id AS device_id,
    n.device_index AS device_index,
    n.trace_index AS trace_index,
    n.time_us AS time_us,
    n.action AS action,
    n.size AS size,
    n.net_size AS net_size,
    n.net_segments AS net_segments,
    n.stack_id AS stack_id,
    c.event_count AS event_count,
    CASE
      WHEN c.event_count <= $points THEN n.position
      ELSE n.position * $points / NULLIF(c.event_count, 0)
    END AS stretch
  FROM numbered AS n
  JOIN counts AS c
    ON c.device_id = n.device_id
),
ranked AS (
  SELECT
    device_id,
    device_index,
    trace_index,
    time_us,
    action,
    size,
    net_size,
    net_segments,
    stack_id,
    event_count,
    ROW_NUMBER() OVER (
      PARTITION BY device_id, stretch
      ORDER BY size DESC, trace_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS size_rank
  FROM stretched
)
SELECT
  device_id,
  device_index,
  trace_index,
  time_us,
  action,
  size,
  net_size,
  net_segments,
  stack_id,
  event_count
FROM ranked
WHERE size_rank = 1
  AND ($device IS NULL OR device_index = $device)
ORDER BY device_index, trace_index
