-- Out-of-memory events, each with the state of the device when the request failed.
--
-- reserved, allocated and pending_free_bytes are the curves' values at the event: memory that the allocator gave back
-- before it gave up is gone already. Where the free memory lay is worked out from what was mapped and what lived there;
-- of a device with many such events, only for the newest 16. NULL where the events do not lead up to the final state (no
-- replay_checks.base).
--
-- A request is served from segments of its own kind only (small ones for up to 1 MiB, large ones for more), of its own
-- memory pool and of its own stream, and the setting max_split_size keeps large gaps from it: see segments_at. The kind_
-- columns count what lies in its kind and pool; largest_usable_block looks at its stream too. They are NULL where the
-- event does not say what was asked for, and where the pool is not known. Events before PyTorch 2.12 and torch_npu 26.2 do
-- not say it: then it is the default one if no private pool had memory; else the only one in which the request's stream had
-- memory; else the one of this stream's newest allocation that still lived. Memory of which segments_at does not know the
-- pool is counted for the default one there.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id             BIGINT   devices.id.
-- @column device_index          BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column trace_index           BIGINT   Position of the event in the device's history.
-- @column time_us               BIGINT   Microseconds since the Unix epoch; NULL without a clock.
-- @column requested             BIGINT   Bytes that were asked for, rounded; NULL where the event does not say, or says 0
--   bytes, which nobody asks for.
-- @column device_free           BIGINT   Bytes that the driver reported as free; NULL where the event does not say.
-- @column reserved              BIGINT   Bytes the allocator held from the driver.
-- @column allocated             BIGINT   Bytes in blocks in use, rounding included.
-- @column pending_free_bytes    BIGINT   Bytes in blocks that were freed but waited for another stream.
-- @column pool_free_bytes       BIGINT   Bytes in no block, in the default pool.
-- @column largest_free_block    BIGINT   Bytes of the largest gap in the default pool, also where the request could not
--   have taken it: see largest_usable_block; 0 without one.
-- @column hole_count            BIGINT   Gaps in the default pool.
-- @column private_reserved      BIGINT   Bytes mapped for private pools.
-- @column private_free_bytes    BIGINT   Bytes in no block there.
-- @column other_stream_bytes    BIGINT   Of pool_free_bytes, what belongs to other streams than the request's. NULL
--   where the event does not say its stream, as kind_other_bytes, kind_cut_bytes, kind_pending_bytes,
--   kind_oversize_bytes and largest_usable_block are.
-- @column unused_segment_bytes  BIGINT   Bytes of mapped ranges of the default pool without any block.
-- @column kind_free_bytes       BIGINT   Bytes in no block in segments of the request's kind and pool, without
--   kind_oversize_bytes.
-- @column kind_largest_free     BIGINT   Bytes of the largest of these gaps, whatever its stream; 0 without one.
-- @column kind_hole_count       BIGINT   Gaps there.
-- @column kind_other_bytes      BIGINT   Of kind_free_bytes, what belongs to other streams than the request's.
-- @column kind_private_bytes    BIGINT   Bytes in no block in segments of the request's kind in other pools: private
--   ones, and the default one where the request was of a private pool; without what max_split_size keeps there.
-- @column kind_cut_bytes        BIGINT   Of kind_free_bytes, what lies around blocks in segments of the request's
--   stream that are large enough for it and not expandable: what a limit on splitting would have kept whole.
-- @column kind_pending_bytes    BIGINT   Bytes in segments of the request's kind, pool and stream in blocks that were
--   freed but waited for another stream.
-- @column workspace_bytes       BIGINT   Bytes of the NPU's workspaces at the moment of the dump.
-- @column capacity_seen         BIGINT   The most that reserved + device_free came to at the device's out-of-memory
--   events: the device has at least that much; NULL where no event says.
-- @column stream                BIGINT   Stream of the request; NULL where the event does not say.
-- @column pool_id_0             BIGINT   First word of the id of the request's memory pool, (0, 0) for the default one;
--   NULL where it is not known.
-- @column pool_id_1             BIGINT   Second word; NULL likewise.
-- @column own_free_bytes        BIGINT   Bytes in no block in the request's pool, whatever their kind and stream; NULL where
--   the pool is not known.
-- @column kind_oversize_bytes   BIGINT   Bytes in no block in segments of the request's kind, pool and stream that
--   max_split_size kept from it.
-- @column largest_usable_block  BIGINT   Bytes of the largest gap that the request could have been served from: of its
--   kind, pool and stream, and not kept from it; 0 without one.
-- @column stack_id              BIGINT   Call stack of the request: call_stacks.id; NULL where none was recorded.
-- @column frames_json           VARCHAR  Its frames as JSON, innermost first; NULL without a stack.
WITH replayed AS (
  SELECT device_id
  FROM _memory_base
  WHERE reserved IS NOT NULL
    AND active IS NOT NULL
),
ranges AS (
  SELECT
    s.device_id AS device_id,
    s.trace_index AS trace_index,
    s.total_size AS total_size,
    s.free_bytes AS free_bytes,
    s.pending_free_bytes AS pending_free_bytes,
    s.hole_count AS hole_count,
    s.largest_free_block AS largest_free_block,
    s.block_count AS block_count,
    -- What another stream owns is kept from the request by that alone.
    CASE WHEN s.stream <> e.stream THEN 0 ELSE s.oversize_bytes END AS oversize_bytes,
    CASE WHEN s.stream <> e.stream THEN s.free_bytes ELSE s.free_bytes - s.oversize_bytes END
      AS open_bytes,
    CASE WHEN s.stream <> e.stream THEN s.hole_count ELSE s.hole_count - s.oversize_count END
      AS open_count,
    CASE WHEN s.stream <> e.stream THEN s.largest_free_block ELSE s.largest_open_block END
      AS largest_open_block,
    s.is_private AS is_private,
    CASE WHEN s.stream <> e.stream THEN 1 WHEN e.stream IS NOT NULL THEN 0 END AS is_other,
    CASE WHEN e.size <= 1048576 THEN s.is_small WHEN e.size > 1048576 THEN 1 - s.is_small END
      AS is_kind,
    CASE
      WHEN s.is_expandable = 0 AND s.block_count > 0 AND s.total_size >= e.size THEN 1
      ELSE 0
    END AS is_cut,
    COALESCE(s.pool_id_0, 0) AS pool_id_0,
    COALESCE(s.pool_id_1, 0) AS pool_id_1,
    e.pool_id_0 AS asked_pool_0,
    e.pool_id_1 AS asked_pool_1,
    CASE WHEN s.stream = e.stream THEN COALESCE(s.pool_id_0, 0) END AS stream_pool_0,
    CASE WHEN s.stream = e.stream THEN COALESCE(s.pool_id_1, 0) END AS stream_pool_1,
    CASE WHEN s.stream = e.stream THEN s.last_alloc_index END AS stream_alloc
  FROM segments_at AS s
  JOIN _oom_events AS e
    ON e.device_id = s.device_id
    AND e.trace_index = s.trace_index
),
-- What the ranges of a moment say together. Joined with themselves, the pool would be laid out
-- once more.
surveyed AS (
  SELECT
    device_id,
    trace_index,
    total_size,
    free_bytes,
    pending_free_bytes,
    hole_count,
    largest_free_block,
    block_count,
    oversize_bytes,
    open_bytes,
    open_count,
    largest_open_block,
    is_private,
    is_other,
    is_kind,
    is_cut,
    pool_id_0,
    pool_id_1,
    asked_pool_0,
    asked_pool_1,
    stream_pool_0,
    stream_pool_1,
    stream_alloc,
    MAX(is_private) OVER (PARTITION BY device_id, trace_index) AS has_private,
    MIN(stream_pool_0) OVER (PARTITION BY device_id, trace_index) AS least_pool_0,
    MIN(stream_pool_1) OVER (PARTITION BY device_id, trace_index) AS least_pool_1,
    MAX(stream_pool_0) OVER (PARTITION BY device_id, trace_index) AS most_pool_0,
    MAX(stream_pool_1) OVER (PARTITION BY device_id, trace_index) AS most_pool_1,
    MAX(stream_alloc) OVER (PARTITION BY device_id, trace_index) AS newest_alloc
  FROM ranges
),
asked AS (
  SELECT
    device_id,
    trace_index,
    total_size,
    free_bytes,
    pending_free_bytes,
    hole_count,
    largest_free_block,
    block_count,
    oversize_bytes,
    open_bytes,
    open_count,
    largest_open_block,
    is_private,
    is_other,
    is_kind,
    is_cut,
    pool_id_0,
    pool_id_1,
    CASE
      WHEN asked_pool_0 IS NOT NULL AND asked_pool_1 IS NOT NULL THEN asked_pool_0
      WHEN has_private = 0 THEN 0
      WHEN least_pool_0 = most_pool_0 AND least_pool_1 = most_pool_1 THEN least_pool_0
      ELSE MAX(CASE WHEN stream_alloc = newest_alloc THEN pool_id_0 END)
        OVER (PARTITION BY device_id, trace_index)
    END AS own_pool_0,
    CASE
      WHEN asked_pool_0 IS NOT NULL AND asked_pool_1 IS NOT NULL THEN asked_pool_1
      WHEN has_private = 0 THEN 0
      WHEN least_pool_0 = most_pool_0 AND least_pool_1 = most_pool_1 THEN least_pool_1
      ELSE MAX(CASE WHEN stream_alloc = newest_alloc THEN pool_id_1 END)
        OVER (PARTITION BY device_id, trace_index)
    END AS own_pool_1
  FROM surveyed
),
-- 1 where something holds, 0 where it does not, NULL where it is not known: so are the products
-- and their sums.
owned AS (
  SELECT
    device_id,
    trace_index,
    total_size,
    free_bytes,
    pending_free_bytes,
    hole_count,
    largest_free_block,
    block_count,
    oversize_bytes,
    open_bytes,
    open_count,
    largest_open_block,
    is_private,
    is_other,
    is_kind,
    is_cut,
    own_pool_0,
    own_pool_1,
    CASE
      WHEN pool_id_0 = own_pool_0 AND pool_id_1 = own_pool_1 THEN 1
      WHEN own_pool_0 IS NOT NULL THEN 0
    END AS is_own
  FROM asked
),
pools AS (
  SELECT
    device_id,
    trace_index,
    SUM(CASE WHEN is_private = 0 THEN free_bytes ELSE 0 END) AS pool_free_bytes,
    MAX(CASE WHEN is_private = 0 THEN largest_free_block ELSE 0 END) AS largest_free_block,
    SUM(CASE WHEN is_private = 0 THEN hole_count ELSE 0 END) AS hole_count,
    SUM(CASE WHEN is_private = 1 THEN total_size ELSE 0 END) AS private_reserved,
    SUM(CASE WHEN is_private = 1 THEN free_bytes ELSE 0 END) AS private_free_bytes,
    SUM(CASE WHEN is_private = 0 AND is_other = 1 THEN free_bytes ELSE 0 END)
      AS other_stream_bytes,
    SUM(CASE WHEN is_private = 0 AND block_count = 0 THEN total_size ELSE 0 END)
      AS unused_segment_bytes,
    MAX(own_pool_0) AS own_pool_0,
    MAX(own_pool_1) AS own_pool_1,
    SUM(is_own * free_bytes) AS own_free_bytes,
    SUM(is_own * is_kind * open_bytes) AS kind_free_bytes,
    MAX(is_own * is_kind * largest_open_block) AS kind_largest_free,
    SUM(is_own * is_kind * open_count) AS kind_hole_count,
    SUM(is_own * is_kind * is_other * open_bytes) AS kind_other_bytes,
    SUM((1 - is_own) * is_kind * open_bytes) AS kind_private_bytes,
    SUM(is_own * is_kind * oversize_bytes) AS kind_oversize_bytes,
    SUM(is_own * is_kind * (1 - is_other) * is_cut * open_bytes) AS kind_cut_bytes,
    SUM(is_own * is_kind * (1 - is_other) * pending_free_bytes) AS kind_pending_bytes,
    MAX(is_own * is_kind * (1 - is_other) * largest_open_block) AS largest_usable_block
  FROM owned
  GROUP BY device_id, trace_index
),
-- Where nothing was mapped there is no range to add up.
looked_into AS (
  SELECT
    e.device_id AS device_id,
    e.trace_index AS trace_index,
    0 AS zero,
    CASE WHEN e.size IS NOT NULL THEN 0 END AS kind_zero
  FROM replayed AS r
  JOIN _oom_events AS e
    ON e.device_id = r.device_id
  WHERE e.newest <= 16
),
capacities AS (
  SELECT
    e.device_id AS device_id,
    MAX(n.reserved + e.device_free) AS capacity_seen
  FROM _oom_events AS e
  JOIN _notable_events AS n
    ON n.device_id = e.device_id
    AND n.trace_index = e.trace_index
  GROUP BY e.device_id
),
workspaces AS (
  SELECT
    device_id,
    SUM(total_size) AS workspace_bytes
  FROM _workspace_segments
  GROUP BY device_id
)
SELECT
  e.device_id AS device_id,
  d.device_index AS device_index,
  e.trace_index AS trace_index,
  e.time_us AS time_us,
  e.size AS requested,
  e.device_free AS device_free,
  n.reserved AS reserved,
  n.allocated AS allocated,
  n.active - n.allocated AS pending_free_bytes,
  COALESCE(p.pool_free_bytes, r.zero) AS pool_free_bytes,
  COALESCE(p.largest_free_block, r.zero) AS largest_free_block,
  COALESCE(p.hole_count, r.zero) AS hole_count,
  COALESCE(p.private_reserved, r.zero) AS private_reserved,
  COALESCE(p.private_free_bytes, r.zero) AS private_free_bytes,
  CASE WHEN e.stream IS NOT NULL THEN COALESCE(p.other_stream_bytes, r.zero) END
    AS other_stream_bytes,
  COALESCE(p.unused_segment_bytes, r.zero) AS unused_segment_bytes,
  CASE WHEN p.device_id IS NULL THEN r.kind_zero ELSE p.kind_free_bytes END
    AS kind_free_bytes,
  CASE WHEN p.device_id IS NULL THEN r.kind_zero ELSE p.kind_largest_free END
    AS kind_largest_free,
  CASE WHEN p.device_id IS NULL THEN r.kind_zero ELSE p.kind_hole_count END
    AS kind_hole_count,
  CASE
    WHEN e.stream IS NULL THEN NULL
    WHEN p.device_id IS NULL THEN r.kind_zero
    ELSE p.kind_other_bytes
  END AS kind_other_bytes,
  CASE WHEN p.device_id IS NULL THEN r.kind_zero ELSE p.kind_private_bytes END
    AS kind_private_bytes,
  CASE
    WHEN e.stream IS NULL THEN NULL
    WHEN p.device_id IS NULL THEN r.kind_zero
    ELSE p.kind_cut_bytes
  END AS kind_cut_bytes,
  CASE
    WHEN e.stream IS NULL THEN NULL
    WHEN p.device_id IS NULL THEN r.kind_zero
    ELSE p.kind_pending_bytes
  END AS kind_pending_bytes,
  COALESCE(w.workspace_bytes, 0) AS workspace_bytes,
  c.capacity_seen AS capacity_seen,
  e.stream AS stream,
  COALESCE(e.pool_id_0, p.own_pool_0, CASE WHEN p.device_id IS NULL THEN r.zero END) AS pool_id_0,
  COALESCE(e.pool_id_1, p.own_pool_1, CASE WHEN p.device_id IS NULL THEN r.zero END) AS pool_id_1,
  CASE WHEN p.device_id IS NULL THEN r.zero ELSE p.own_free_bytes END AS own_free_bytes,
  CASE
    WHEN e.stream IS NULL THEN NULL
    WHEN p.device_id IS NULL THEN r.kind_zero
    ELSE p.kind_oversize_bytes
  END AS kind_oversize_bytes,
  CASE
    WHEN e.stream IS NULL THEN NULL
    WHEN p.device_id IS NULL THEN r.kind_zero
    ELSE p.largest_usable_block
  END AS largest_usable_block,
  e.stack_id AS stack_id,
  k.frames_json AS frames_json
FROM _oom_events AS e
JOIN devices AS d
  ON d.id = e.device_id
LEFT JOIN _notable_events AS n
  ON n.device_id = e.device_id
  AND n.trace_index = e.trace_index
LEFT JOIN pools AS p
  ON p.device_id = e.device_id
  AND p.trace_index = e.trace_index
LEFT JOIN looked_into AS r
  ON r.device_id = e.device_id
  AND r.trace_index = e.trace_index
LEFT JOIN capacities AS c
  ON c.device_id = e.device_id
LEFT JOIN workspaces AS w
  ON w.device_id = e.device_id
LEFT JOIN call_stacks AS k
  ON k.id = e.stack_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index, e.trace_index
