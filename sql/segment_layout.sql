-- Where blocks lie in the segments with the most unallocated bytes: one row per block, by position.
--
-- Blocks that are smaller than a thousandth of their segment are joined with others of their state nearby, so that a
-- segment has few thousand rows at most. Added up from the first to the last, the sizes fill the segment. Segments of
-- the NPU's workspace allocator are left out. Blocks that an NPU shows as inactive because a graph's capture puts off their
-- free are pending here.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
-- @param limit   BIGINT = 20    Only so many segments of each device; NULL for all.
--
-- @column device_id       BIGINT   devices.id.
-- @column device_index    BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column segment_rank    BIGINT   1 for the segment of the device with the most unallocated bytes.
-- @column segment_id      BIGINT   segments.id.
-- @column address         BIGINT   Start address of the segment.
-- @column total_size      BIGINT   Bytes of the segment.
-- @column allocated_size  BIGINT   Of them, in blocks in state active_allocated.
-- @column segment_type    VARCHAR  large or small.
-- @column stream          BIGINT   Stream that owns the segment.
-- @column block_offset    BIGINT   Bytes from the segment's start to the first of the blocks.
-- @column block_size      BIGINT   Bytes of the blocks.
-- @column block_count     BIGINT   How many blocks these are.
-- @column state           VARCHAR  active_allocated, active_pending_free or inactive.
-- @column stack_id        BIGINT   call_stacks.id; NULL where several blocks are joined, and where none was recorded.
WITH allocated AS (
  SELECT
    segment_id,
    SUM(CASE WHEN state = 'active_allocated' THEN size ELSE 0 END) AS allocated_size
  FROM _pool_blocks
  GROUP BY segment_id
),
ranked AS (
  SELECT
    p.segment_id AS segment_id,
    p.device_id AS device_id,
    p.total_size AS total_size,
    COALESCE(a.allocated_size, 0) AS allocated_size,
    CAST(ROW_NUMBER() OVER (
      PARTITION BY p.device_id
      ORDER BY p.total_size - COALESCE(a.allocated_size, 0) DESC, p.total_size DESC, p.segment_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS BIGINT) AS segment_rank
  FROM _pool_segments AS p
  LEFT JOIN allocated AS a
    ON a.segment_id = p.segment_id
),
placed AS (
  SELECT
    r.segment_id AS segment_id,
    b.block_id AS block_id,
    b.size AS size,
    b.state AS state,
    b.stack_id AS stack_id,
    r.total_size AS total_size,
    SUM(b.size) OVER (
      PARTITION BY b.segment_id
      ORDER BY b.block_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) - b.size AS block_offset
  FROM ranked AS r
  JOIN _actual_blocks AS b
    ON b.segment_id = r.segment_id
  WHERE ($limit IS NULL OR r.segment_rank <= $limit)
),
-- A large block is a group of its own, by its id; small ones share the group of their
-- thousandth, numbered below 0.
grouped AS (
  SELECT
    segment_id,
    state,
    size,
    stack_id,
    block_offset,
    CASE
      WHEN size * 1000 >= total_size THEN block_id
      ELSE -1 - block_offset * 1000 / NULLIF(total_size, 0)
    END AS block_group
  FROM placed
),
spans AS (
  SELECT
    segment_id,
    state,
    MIN(block_offset) AS block_offset,
    SUM(size) AS block_size,
    COUNT(*) AS block_count,
    CASE WHEN COUNT(*) = 1 THEN MAX(stack_id) END AS stack_id
  FROM grouped
  GROUP BY segment_id, state, block_group
)
SELECT
  r.device_id AS device_id,
  d.device_index AS device_index,
  r.segment_rank AS segment_rank,
  r.segment_id AS segment_id,
  s.address AS address,
  r.total_size AS total_size,
  r.allocated_size AS allocated_size,
  s.segment_type AS segment_type,
  s.stream AS stream,
  p.block_offset AS block_offset,
  p.block_size AS block_size,
  p.block_count AS block_count,
  p.state AS state,
  p.stack_id AS stack_id
FROM spans AS p
JOIN ranked AS r
  ON r.segment_id = p.segment_id
JOIN segments AS s
  ON s.id = p.segment_id
JOIN devices AS d
  ON d.id = r.device_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index, r.segment_rank, p.block_offset, p.state
