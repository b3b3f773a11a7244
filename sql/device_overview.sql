-- Memory of every device in the final state, one row per device, in the allocator's own counters.
--
-- Two ledgers: reserved, allocated and active are rounded sizes, as `memory_reserved()` and `memory_allocated()` report
-- them; the requested counters are what the program asked for. Segments of the NPU's workspace allocator are left out
-- of everything but workspace_bytes. Active, requested and the counts by state are as the file says them, also where an
-- NPU shows blocks as inactive that wait for a free (import_stats, `pending_shown_inactive`); hole_bytes,
-- unused_segment_bytes and the curves take those for active. Pinned host memory is a row of its own: domain `host`,
-- device_index -1. Devices are not to be added together.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id                  BIGINT   devices.id.
-- @column device_index               BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column device_type                VARCHAR  `Ascend-NPU` or `CUDA-GPU`.
-- @column domain                     VARCHAR  `device`, or `host` for pinned host memory.
-- @column reserved                   BIGINT   Bytes the allocator holds from the driver.
-- @column allocated                  BIGINT   Bytes in blocks in state active_allocated.
-- @column active                     BIGINT   Bytes in blocks that are allocated or wait for a pending free.
-- @column requested                  BIGINT   Bytes asked for in active blocks, as the segments say; else from the
--   blocks; NULL where neither says.
-- @column allocated_requested        BIGINT   Bytes asked for in blocks in state active_allocated, summed over the
--   blocks; NULL where a block does not say.
-- @column active_requested           BIGINT   Bytes asked for in active blocks, summed over the blocks; NULL where a
--   block does not say.
-- @column fragmentation_ratio        DOUBLE   (reserved - allocated) / reserved; NULL where nothing is reserved.
-- @column unused_segment_bytes       BIGINT   Bytes of segments of the default pool without an active block: cache that
--   the allocator can give back whole, so no fragmentation.
-- @column hole_bytes                 BIGINT   Bytes free inside segments of the default pool that are in use: what
--   fragmentation costs. What is free in private pools serves their owner only; device_fragmentation has it.
-- @column segment_count              BIGINT   Segments.
-- @column block_count                BIGINT   Blocks.
-- @column active_allocated_count     BIGINT   Blocks in use.
-- @column active_allocated_bytes     BIGINT   Their bytes.
-- @column active_pending_free_count  BIGINT   Blocks that were freed but wait for another stream.
-- @column active_pending_free_bytes  BIGINT   Their bytes.
-- @column inactive_count             BIGINT   Blocks that are cached and free.
-- @column inactive_bytes             BIGINT   Their bytes.
-- @column trace_count                BIGINT   Recorded events: rows of traces without the workspace entries, which
--   describe the moment of the dump and are no events.
-- @column oom_count                  BIGINT   Of them, out-of-memory events.
-- @column workspace_bytes            BIGINT   Bytes of the NPU's workspace segments; 0 also where no history was
--   recorded, because they cannot be told from others then.
WITH segment_counters AS (
  SELECT
    device_id,
    COUNT(*) AS segment_count,
    SUM(total_size) AS reserved,
    CASE WHEN COUNT(allocated_size) = COUNT(*) THEN SUM(allocated_size) END AS allocated,
    CASE WHEN COUNT(active_size) = COUNT(*) THEN SUM(active_size) END AS active,
    CASE WHEN COUNT(requested_size) = COUNT(*) THEN SUM(requested_size) END AS requested
  FROM _pool_segments
  GROUP BY device_id
),
block_counters AS (
  SELECT
    device_id,
    COUNT(*) AS block_count,
    SUM(CASE WHEN state = 'active_allocated' THEN 1 ELSE 0 END) AS active_allocated_count,
    SUM(CASE WHEN state = 'active_allocated' THEN size ELSE 0 END) AS active_allocated_bytes,
    SUM(CASE WHEN state = 'active_pending_free' THEN 1 ELSE 0 END) AS active_pending_free_count,
    SUM(CASE WHEN state = 'active_pending_free' THEN size ELSE 0 END)
      AS active_pending_free_bytes,
    SUM(CASE WHEN state = 'inactive' THEN 1 ELSE 0 END) AS inactive_count,
    SUM(CASE WHEN state = 'inactive' THEN size ELSE 0 END) AS inactive_bytes,
    SUM(CASE WHEN state = 'active_allocated' THEN requested_size ELSE 0 END) AS allocated_requested,
    SUM(CASE WHEN state = 'active_pending_free' THEN requested_size ELSE 0 END)
      AS pending_requested,
    SUM(CASE WHEN state = 'active_allocated' AND requested_size IS NULL THEN 1 ELSE 0 END)
      AS allocated_unknown,
    SUM(CASE WHEN state = 'active_pending_free' AND requested_size IS NULL THEN 1 ELSE 0 END)
      AS pending_unknown
  FROM _pool_blocks
  GROUP BY device_id
),
segment_parts AS (
  SELECT
    device_id,
    SUM(CASE WHEN is_unused = 1 AND is_private = 0 THEN total_size ELSE 0 END)
      AS unused_segment_bytes,
    SUM(CASE WHEN is_unused = 0 AND is_private = 0 THEN free_bytes ELSE 0 END) AS hole_bytes
  FROM _segment_fragmentation
  GROUP BY device_id
),
workspace AS (
  SELECT
    device_id,
    SUM(total_size) AS workspace_bytes
  FROM _workspace_segments
  GROUP BY device_id
),
events AS (
  SELECT
    device_id,
    COUNT(*) AS trace_count,
    SUM(CASE WHEN action = 'oom' THEN 1 ELSE 0 END) AS oom_count
  FROM traces
  WHERE is_workspace = 0
  GROUP BY device_id
),
-- A segment that does not say a counter has it from its blocks, which tile it. No block, no byte.
counters AS (
  SELECT
    d.id AS device_id,
    COALESCE(s.reserved, 0) AS reserved,
    CASE
      WHEN s.device_id IS NULL THEN 0
      ELSE COALESCE(s.allocated, b.active_allocated_bytes, 0)
    END AS allocated,
    CASE
      WHEN s.device_id IS NULL THEN 0
      ELSE COALESCE(s.active, b.active_allocated_bytes + b.active_pending_free_bytes, 0)
    END AS active,
    s.requested AS segment_requested,
    CASE
      WHEN s.device_id IS NULL THEN 0
      WHEN b.allocated_unknown = 0 THEN b.allocated_requested
    END AS allocated_requested,
    CASE
      WHEN s.device_id IS NULL THEN 0
      WHEN b.allocated_unknown + b.pending_unknown = 0
      THEN b.allocated_requested + b.pending_requested
    END AS active_requested,
    COALESCE(s.segment_count, 0) AS segment_count,
    COALESCE(b.block_count, 0) AS block_count,
    COALESCE(b.active_allocated_count, 0) AS active_allocated_count,
    COALESCE(b.active_allocated_bytes, 0) AS active_allocated_bytes,
    COALESCE(b.active_pending_free_count, 0) AS active_pending_free_count,
    COALESCE(b.active_pending_free_bytes, 0) AS active_pending_free_bytes,
    COALESCE(b.inactive_count, 0) AS inactive_count,
    COALESCE(b.inactive_bytes, 0) AS inactive_bytes
  FROM devices AS d
  LEFT JOIN segment_counters AS s
    ON s.device_id = d.id
  LEFT JOIN block_counters AS b
    ON b.device_id = d.id
)
SELECT
  c.device_id AS device_id,
  d.device_index AS device_index,
  d.device_type AS device_type,
  CASE WHEN d.device_index < 0 THEN 'host' ELSE 'device' END AS domain,
  c.reserved AS reserved,
  c.allocated AS allocated,
  c.active AS active,
  COALESCE(c.segment_requested, c.active_requested) AS requested,
  c.allocated_requested AS allocated_requested,
  c.active_requested AS active_requested,
  CAST(c.reserved - c.allocated AS DOUBLE) / NULLIF(c.reserved, 0) AS fragmentation_ratio,
  COALESCE(u.unused_segment_bytes, 0) AS unused_segment_bytes,
  COALESCE(u.hole_bytes, 0) AS hole_bytes,
  c.segment_count AS segment_count,
  c.block_count AS block_count,
  c.active_allocated_count AS active_allocated_count,
  c.active_allocated_bytes AS active_allocated_bytes,
  c.active_pending_free_count AS active_pending_free_count,
  c.active_pending_free_bytes AS active_pending_free_bytes,
  c.inactive_count AS inactive_count,
  c.inactive_bytes AS inactive_bytes,
  COALESCE(e.trace_count, 0) AS trace_count,
  COALESCE(e.oom_count, 0) AS oom_count,
  COALESCE(w.workspace_bytes, 0) AS workspace_bytes
FROM counters AS c
JOIN devices AS d
  ON d.id = c.device_id
LEFT JOIN segment_parts AS u
  ON u.device_id = c.device_id
LEFT JOIN events AS e
  ON e.device_id = c.device_id
LEFT JOIN workspace AS w
  ON w.device_id = c.device_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index
