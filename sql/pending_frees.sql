-- Blocks that were freed but wait for another stream, largest first, and since when.
--
-- The allocator asks for finished streams at a later allocation. Until then such a block is active though nobody holds
-- it: memory that counts as fragmentation and is none. Blocks that an NPU shows as inactive because a graph's capture puts
-- off their free are among them.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
-- @param limit   BIGINT = NULL  Only the largest; NULL for all.
--
-- @column block_id              BIGINT  blocks.id.
-- @column segment_id            BIGINT  segments.id.
-- @column device_id             BIGINT  devices.id.
-- @column device_index          BIGINT  Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column address               BIGINT  Start address.
-- @column size                  BIGINT  Bytes, rounding included.
-- @column requested_size        BIGINT  Bytes asked for; NULL where the block does not say.
-- @column alloc_index           BIGINT  trace_index of its alloc; NULL where it is not among the events.
-- @column free_requested_index  BIGINT  trace_index of its free_requested; NULL likewise.
-- @column waited_events         BIGINT  Events of the device since then; NULL likewise.
-- @column stack_id              BIGINT  Call stack of the allocation: call_stacks.id; NULL where none was recorded.
-- @column free_stack_id         BIGINT  Call stack of free_requested: call_stacks.id; NULL likewise.
WITH newest_events AS (
  SELECT
    device_id,
    MAX(trace_index) AS last_index
  FROM traces
  WHERE is_workspace = 0
  GROUP BY device_id
),
pending_allocations AS (
  SELECT
    device_id,
    addr,
    MAX(alloc_index) AS alloc_index,
    MAX(free_requested_index) AS free_requested_index,
    MAX(stack_id) AS stack_id,
    MAX(free_stack_id) AS free_stack_id
  FROM allocations
  WHERE fate = 'pending_free'
  GROUP BY device_id, addr
)
SELECT
  b.block_id AS block_id,
  b.segment_id AS segment_id,
  b.device_id AS device_id,
  d.device_index AS device_index,
  b.address AS address,
  b.size AS size,
  b.requested_size AS requested_size,
  a.alloc_index AS alloc_index,
  a.free_requested_index AS free_requested_index,
  e.last_index - a.free_requested_index AS waited_events,
  COALESCE(b.stack_id, a.stack_id) AS stack_id,
  a.free_stack_id AS free_stack_id
FROM _actual_blocks AS b
JOIN devices AS d
  ON d.id = b.device_id
LEFT JOIN pending_allocations AS a
  ON a.device_id = b.device_id
  AND a.addr = b.address
LEFT JOIN newest_events AS e
  ON e.device_id = b.device_id
WHERE b.state = 'active_pending_free'
  AND ($device IS NULL OR d.device_index = $device)
ORDER BY b.size DESC, d.device_index, b.block_id
LIMIT $limit
