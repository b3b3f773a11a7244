-- Allocations with the bytes their blocks take up, and when they count.
--
-- An allocation counts in allocated from its alloc to its free_requested, in active to its free_completed. One that
-- began before the window has no alloc_index; it is in allocated then only if its free was still to be requested.
--
-- @column device_id             BIGINT  devices.id.
-- @column addr                  BIGINT  Address.
-- @column requested_size        BIGINT  Bytes asked for.
-- @column rule_size             BIGINT  Bytes of a block by the rule of _event_scale.
-- @column block_size            BIGINT  Bytes of the block: what the replay found, else by the rule.
-- @column alloc_index           BIGINT  Event of the alloc; NULL before the window.
-- @column free_requested_index  BIGINT  Event of free_requested; NULL where it never came.
-- @column free_completed_index  BIGINT  Event of free_completed; NULL where it never came.
-- @column allocated_until       BIGINT  Event from which on it is not in allocated; NULL where it is to the end; -1
--   where it never was, because its free was pending when the window began.
-- @column stack_id              BIGINT  Call stack of the alloc: call_stacks.id; NULL where none was recorded.
SELECT
  a.device_id AS device_id,
  a.addr AS addr,
  a.size AS requested_size,
  (a.size + k.padding + 511) / NULLIF(512, 0) * 512 AS rule_size,
  COALESCE(a.block_size, (a.size + k.padding + 511) / NULLIF(512, 0) * 512) AS block_size,
  a.alloc_index AS alloc_index,
  a.free_requested_index AS free_requested_index,
  a.free_completed_index AS free_completed_index,
  CASE
    WHEN a.free_requested_index IS NOT NULL THEN a.free_requested_index
    WHEN a.alloc_index IS NULL AND a.fate <> 'live' THEN -1
    ELSE a.free_completed_index
  END AS allocated_until,
  a.stack_id AS stack_id
FROM _event_scale AS k
JOIN allocations AS a
  ON a.device_id = k.device_id
