-- Call stacks whose active blocks lose the most memory to rounding: of each device, most first.
--
-- The allocator rounds a request up to 512 bytes, and on an NPU adds 32 bytes before; in the large pool a block can be
-- up to 1 MiB larger than that, because so little is not split off. Blocks that an NPU shows as inactive though they wait
-- for a free that a graph's capture puts off are active here, so that all stacks of a device add up to its
-- internal_waste_bytes in device_fragmentation. Blocks that do not say what was asked for are left out.
--
-- @param limit   BIGINT = 10    Only the first stacks of each device; NULL for all.
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id       BIGINT   devices.id.
-- @column device_index    BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column stack_id        BIGINT   call_stacks.id; NULL for all blocks of which no stack was recorded.
-- @column block_count     BIGINT   Active blocks.
-- @column total_size      BIGINT   Bytes in them.
-- @column requested_size  BIGINT   Bytes asked for.
-- @column waste_bytes     BIGINT   total_size - requested_size.
-- @column waste_ratio     DOUBLE   waste_bytes / total_size.
-- @column frames_json     VARCHAR  The stack's frames as JSON, innermost first; NULL without a stack.
WITH by_stack AS (
  SELECT
    device_id,
    stack_id,
    COUNT(*) AS block_count,
    SUM(size) AS total_size,
    SUM(requested_size) AS requested_size
  FROM _actual_blocks
  WHERE requested_size IS NOT NULL
  GROUP BY device_id, stack_id
),
ranked AS (
  SELECT
    device_id,
    stack_id,
    block_count,
    total_size,
    requested_size,
    ROW_NUMBER() OVER (
      PARTITION BY device_id
      ORDER BY total_size - requested_size DESC, stack_id IS NULL, stack_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS place
  FROM by_stack
)
SELECT
  w.device_id AS device_id,
  d.device_index AS device_index,
  w.stack_id AS stack_id,
  w.block_count AS block_count,
  w.total_size AS total_size,
  w.requested_size AS requested_size,
  w.total_size - w.requested_size AS waste_bytes,
  CAST(w.total_size - w.requested_size AS DOUBLE) / NULLIF(w.total_size, 0) AS waste_ratio,
  c.frames_json AS frames_json
FROM ranked AS w
JOIN devices AS d
  ON d.id = w.device_id
LEFT JOIN call_stacks AS c
  ON c.id = w.stack_id
WHERE ($device IS NULL OR d.device_index = $device)
  AND ($limit IS NULL OR w.place <= $limit)
ORDER BY d.device_index, w.place
