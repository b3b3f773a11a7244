-- Call stacks that hold the most memory at the moment of the snapshot, largest first.
--
-- Counts blocks in state active_allocated; memory freed earlier is not here. A stack that allocates on several devices
-- has a row for each.
--
-- @param limit   BIGINT = 10    Only the largest; NULL for all.
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id       BIGINT   devices.id.
-- @column device_index    BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column stack_id        BIGINT   call_stacks.id; NULL for all blocks of which no stack was recorded.
-- @column total_size      BIGINT   Bytes in those blocks, rounding included.
-- @column size_ratio      DOUBLE   total_size / bytes in all active_allocated blocks of the device.
-- @column requested_size  BIGINT   Bytes asked for; NULL where a block does not say.
-- @column block_count     BIGINT   Number of blocks.
-- @column largest_size    BIGINT   Bytes of the largest of them.
-- @column frames_json     VARCHAR  The stack's frames as JSON, innermost first; NULL without a stack.
WITH by_stack AS (
  SELECT
    device_id,
    stack_id,
    SUM(size) AS total_size,
    CASE WHEN COUNT(requested_size) = COUNT(*) THEN SUM(requested_size) END AS requested_size,
    COUNT(*) AS block_count,
    MAX(size) AS largest_size
  FROM _pool_blocks
  WHERE state = 'active_allocated'
  GROUP BY device_id, stack_id
),
by_device AS (
  SELECT
    device_id,
    SUM(total_size) AS device_size
  FROM by_stack
  GROUP BY device_id
)
SELECT
  s.device_id AS device_id,
  d.device_index AS device_index,
  s.stack_id AS stack_id,
  s.total_size AS total_size,
  CAST(s.total_size AS DOUBLE) / NULLIF(a.device_size, 0) AS size_ratio,
  s.requested_size AS requested_size,
  s.block_count AS block_count,
  s.largest_size AS largest_size,
  c.frames_json AS frames_json
FROM by_stack AS s
JOIN by_device AS a
  ON a.device_id = s.device_id
JOIN devices AS d
  ON d.id = s.device_id
LEFT JOIN call_stacks AS c
  ON c.id = s.stack_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY s.total_size DESC, d.device_index, s.stack_id IS NULL, s.stack_id
LIMIT $limit
