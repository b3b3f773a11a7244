-- Allocations with the bytes their blocks take up, and when they count.
--
-- An allocation counts in allocated from its alloc to its free_requested, in active to its free_completed. One that
-- began before the window has no alloc_index; it is in allocated then only if its free was still to be requested.
--
-- @column device_id             BIGINT  devices.id.
-- @column addr                  BIGINT  Address.
-- @column requested_size        BIGINT  Bytes asked for.
-- @column rule_size             BIGINT  Bytes of a block by the rule of _scale.
-- @column block_size            BIGINT  Bytes of the block: what the replay found, else by the rule.
-- @column stream                BIGINT  Stream of the alloc; NULL where the event is missing or does not say.
-- @column pool_id_0              BIGINT  First word of the memory pool's id; NULL where it is not known.
-- @column pool_id_1              BIGINT  Second word; NULL likewise.
-- @column alloc_index           BIGINT  Event of the alloc; NULL before the window.
-- @column free_requested_index  BIGINT  Event of free_requested; NULL where it never came.
-- @column free_completed_index  BIGINT  Event of free_completed; NULL where it never came.
-- @column allocated_until       BIGINT  Event from which on it is not in allocated; NULL where it is to the end; -1
--   where it never was, because its free was pending when the window began.
-- @column stack_id              BIGINT  Call stack of the alloc: call_stacks.id; NULL where none was recorded.
WITH padded AS (
  SELECT
    device_id,
    addr,
    size AS requested_size,
    size + (SELECT MAX(padding) FROM _scale) AS padded_size,
    block_size,
    stream,
    pool_id_0,
    pool_id_1,
    alloc_index,
    free_requested_index,
    free_completed_index,
    fate,
    stack_id
  FROM allocations
)
SELECT
  device_id,
  addr,
  requested_size,
  (padded_size + 511) / NULLIF(512, 0) * 512 AS rule_size,
  COALESCE(block_size, (padded_size + 511) / NULLIF(512, 0) * 512) AS block_size,
  stream,
  pool_id_0,
  pool_id_1,
  alloc_index,
  free_requested_index,
  free_completed_index,
  CASE
    WHEN free_requested_index IS NOT NULL THEN free_requested_index
    WHEN alloc_index IS NULL AND fate <> 'live' THEN -1
    ELSE free_completed_index
  END AS allocated_until,
  stack_id
FROM padded
