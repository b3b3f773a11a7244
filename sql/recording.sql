-- What was recorded of every device, one row per device.
--
-- It tells whether the events go back to the beginning, and how much of the memory in use has a call stack.
-- An address whose first event is a free was allocated before the first event that is left: the ring buffer overflowed,
-- or the recording began late. No such address proves nothing.
--
-- @column device_id           BIGINT  devices.id.
-- @column device_index        BIGINT  Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column event_count         BIGINT  Events: rows of traces without the workspace entries.
-- @column timed_count         BIGINT  Of them, with a time.
-- @column stack_count         BIGINT  Of them, with a call stack.
-- @column first_free_count    BIGINT  Addresses whose first event is a free.
-- @column max_entries         BIGINT  Events the ring buffer can hold; NULL where the snapshot does not say.
-- @column overflow_count      BIGINT  More than 0 where the snapshot says that the ring buffer overflowed; else NULL.
-- @column left_out_count      BIGINT  Events left out when the snapshot was read.
-- @column active_bytes        BIGINT  Bytes in blocks that are allocated or wait for a pending free.
-- @column active_stack_bytes  BIGINT  Of them, in blocks with a call stack.
-- @column earlier_count       BIGINT  Allocations that began before the first event that is left.
WITH events AS (
  SELECT
    device_id,
    COUNT(*) AS event_count,
    COUNT(time_us) AS timed_count,
    COUNT(stack_id) AS stack_count
  FROM traces
  WHERE is_workspace = 0
  GROUP BY device_id
),
-- The first use of an address, twice its number; one more where it is a free.
first_uses AS (
  SELECT
    device_id,
    addr,
    MIN(
      CASE action
        WHEN 'alloc' THEN trace_index * 2
        WHEN 'free_requested' THEN trace_index * 2 + 1
        WHEN 'free_completed' THEN trace_index * 2 + 1
      END
    ) AS first_use
  FROM traces
  WHERE is_workspace = 0
  GROUP BY device_id, addr
),
first_frees AS (
  SELECT
    device_id,
    COUNT(*) AS first_free_count
  FROM first_uses
  WHERE first_use % 2 = 1
  GROUP BY device_id
),
active AS (
  SELECT
    device_id,
    SUM(size) AS active_bytes,
    SUM(CASE WHEN stack_id IS NOT NULL THEN size ELSE 0 END) AS active_stack_bytes
  FROM _pool_blocks
  WHERE state IN ('active_allocated', 'active_pending_free')
  GROUP BY device_id
),
before AS (
  SELECT
    device_id,
    COUNT(*) AS earlier_count
  FROM allocations
  WHERE origin = 'before_window'
  GROUP BY device_id
),
-- A snapshot says these once per device, or once for all of them.
said AS (
  SELECT
    d.id AS device_id,
    MAX(CASE WHEN i.name = 'trace_alloc_max_entries' THEN i.value END) AS max_entries,
    MAX(CASE WHEN i.name = 'trace_alloc_overflowed' THEN i.value END) AS overflow_count,
    SUM(CASE WHEN i.name = 'events_left_out' THEN i.value ELSE 0 END) AS left_out_count
  FROM devices AS d
  JOIN import_stats AS i
    ON i.device_id IS NULL OR i.device_id = d.id
  WHERE i.name IN ('trace_alloc_max_entries', 'trace_alloc_overflowed')
    OR (i.name = 'events_left_out' AND i.device_id IS NOT NULL)
  GROUP BY d.id
)
SELECT
  d.id AS device_id,
  d.device_index AS device_index,
  COALESCE(e.event_count, 0) AS event_count,
  COALESCE(e.timed_count, 0) AS timed_count,
  COALESCE(e.stack_count, 0) AS stack_count,
  COALESCE(f.first_free_count, 0) AS first_free_count,
  s.max_entries AS max_entries,
  s.overflow_count AS overflow_count,
  COALESCE(s.left_out_count, 0) AS left_out_count,
  COALESCE(a.active_bytes, 0) AS active_bytes,
  COALESCE(a.active_stack_bytes, 0) AS active_stack_bytes,
  COALESCE(b.earlier_count, 0) AS earlier_count
FROM devices AS d
LEFT JOIN events AS e
  ON e.device_id = d.id
LEFT JOIN first_frees AS f
  ON f.device_id = d.id
LEFT JOIN active AS a
  ON a.device_id = d.id
LEFT JOIN before AS b
  ON b.device_id = d.id
LEFT JOIN said AS s
  ON s.device_id = d.id
ORDER BY d.device_index
