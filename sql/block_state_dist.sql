-- Blocks by device and state: how many, how large, and their share of the device.
--
-- Blocks of the NPU's workspace allocator are left out. Inactive memory is cached by the allocator; memory pending free
-- was freed while another stream still used it.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id       BIGINT   devices.id.
-- @column device_index    BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column state           VARCHAR  active_allocated, active_pending_free or inactive.
-- @column block_count     BIGINT   Number of blocks.
-- @column total_size      BIGINT   Bytes in those blocks, rounding included.
-- @column largest_size    BIGINT   Bytes of the largest of them.
-- @column requested_size  BIGINT   Bytes asked for in those blocks; NULL for inactive ones and where a block does not
--   say.
-- @column size_ratio      DOUBLE   total_size / bytes in all blocks of the device.
WITH by_state AS (
  SELECT
    device_id,
    state,
    COUNT(*) AS block_count,
    SUM(size) AS total_size,
    MAX(size) AS largest_size,
    CASE WHEN COUNT(requested_size) = COUNT(*) THEN SUM(requested_size) END AS requested_size
  FROM _pool_blocks
  GROUP BY device_id, state
),
by_device AS (
  SELECT
    device_id,
    SUM(total_size) AS device_size
  FROM by_state
  GROUP BY device_id
)
SELECT
  s.device_id AS device_id,
  d.device_index AS device_index,
  s.state AS state,
  s.block_count AS block_count,
  s.total_size AS total_size,
  s.largest_size AS largest_size,
  s.requested_size AS requested_size,
  CAST(s.total_size AS DOUBLE) / NULLIF(a.device_size, 0) AS size_ratio
FROM by_state AS s
JOIN by_device AS a
  ON a.device_id = s.device_id
JOIN devices AS d
  ON d.id = s.device_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index, s.state
