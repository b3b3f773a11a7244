-- Out-of-memory events, each with the state of the device when the request failed.
--
-- reserved, allocated and pending_free_bytes are the curves' values at the event: memory that the allocator gave back
-- before it gave up is gone already. Where the free memory lay is worked out from what was mapped and what lived there;
-- of a device with many such events, only for the newest 16. NULL where the events do not lead up to the final state (no
-- replay_checks.base). A request is served from segments of its own kind only: small ones for up to 1 MiB, large ones
-- for more; and from its own memory pool only: the default one, unless the event says another. The kind_ columns count
-- what lies in those; they are NULL too where the event does not say what was asked for.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id             BIGINT   devices.id.
-- @column device_index          BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column trace_index           BIGINT   Position of the event in the device's history.
-- @column time_us               BIGINT   Microseconds since the Unix epoch; NULL without a clock.
-- @column requested             BIGINT   Bytes that were asked for, rounded; NULL where the event does not say.
-- @column device_free           BIGINT   Bytes that the driver reported as free; NULL where the event does not say.
-- @column reserved              BIGINT   Bytes the allocator held from the driver.
-- @column allocated             BIGINT   Bytes in blocks in use, rounding included.
-- @column pending_free_bytes    BIGINT   Bytes in blocks that were freed but waited for another stream.
-- @column pool_free_bytes       BIGINT   Bytes in no block, in the default pool.
-- @column largest_free_block    BIGINT   Bytes of the largest gap in the default pool; 0 without one.
-- @column hole_count            BIGINT   Gaps in the default pool.
-- @column private_reserved      BIGINT   Bytes mapped for private pools.
-- @column private_free_bytes    BIGINT   Bytes in no block there.
-- @column other_stream_bytes    BIGINT   Of pool_free_bytes, what belongs to other streams than the request's.
-- @column unused_segment_bytes  BIGINT   Bytes of mapped ranges of the default pool without any block.
-- @column kind_free_bytes       BIGINT   Bytes in no block in segments of the request's kind and pool; private pools
--   are not told from each other.
-- @column kind_largest_free     BIGINT   Bytes of the largest gap there; 0 without one.
-- @column kind_hole_count       BIGINT   Gaps there.
-- @column kind_other_bytes      BIGINT   Of kind_free_bytes, what belongs to other streams than the request's.
-- @column kind_private_bytes    BIGINT   Bytes in no block in segments of the request's kind in other pools: private
--   ones, or the default one where the request was of a private pool.
-- @column kind_cut_bytes        BIGINT   Of kind_free_bytes, what lies around blocks in segments of the request's
--   stream that are large enough for it and not expandable: what a limit on splitting would have kept whole.
-- @column kind_pending_bytes    BIGINT   Bytes in segments of the request's kind, pool and stream in blocks that were
--   freed but waited for another stream.
-- @column workspace_bytes       BIGINT   Bytes of the NPU's workspaces at the moment of the dump.
-- @column capacity_seen         BIGINT   The most that reserved + device_free came to at the device's out-of-memory
--   events: the device has at least that much; NULL where no event says.
-- @column stream                BIGINT   Stream of the request; NULL where the event does not say.
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
    s.is_private AS is_private,
    CASE WHEN s.is_private = e.is_private THEN 1 ELSE 0 END AS is_own,
    CASE WHEN s.stream <> e.stream THEN 1 ELSE 0 END AS is_other,
    CASE WHEN e.size <= 1048576 THEN s.is_small ELSE 1 - s.is_small END AS is_kind,
    CASE
      WHEN s.is_expandable = 0 AND s.block_count > 0 AND s.total_size >= e.size THEN 1
      ELSE 0
    END AS is_cut
  FROM segments_at AS s
  JOIN _oom_events AS e
    ON e.device_id = s.device_id
    AND e.trace_index = s.trace_index
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
    SUM(CASE WHEN is_own = 1 AND is_kind = 1 THEN free_bytes ELSE 0 END) AS kind_free_bytes,
    MAX(CASE WHEN is_own = 1 AND is_kind = 1 THEN largest_free_block ELSE 0 END)
      AS kind_largest_free,
    SUM(CASE WHEN is_own = 1 AND is_kind = 1 THEN hole_count ELSE 0 END) AS kind_hole_count,
    SUM(CASE WHEN is_own = 1 AND is_kind = 1 AND is_other = 1 THEN free_bytes ELSE 0 END)
      AS kind_other_bytes,
    SUM(CASE WHEN is_own = 0 AND is_kind = 1 THEN free_bytes ELSE 0 END)
      AS kind_private_bytes,
    SUM(
      CASE
        WHEN is_own = 1 AND is_kind = 1 AND is_other = 0 AND is_cut = 1 THEN free_bytes
        ELSE 0
      END
    ) AS kind_cut_bytes,
    SUM(
      CASE
        WHEN is_own = 1 AND is_kind = 1 AND is_other = 0 THEN pending_free_bytes
        ELSE 0
      END
    ) AS kind_pending_bytes
  FROM ranges
  GROUP BY device_id, trace_index
),
-- Where nothing was mapped there is no range to add up.
looked_into AS (
  SELECT
    e.device_id AS device_id,
    e.trace_index AS trace_index,
    0 AS zero
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
  COALESCE(p.other_stream_bytes, r.zero) AS other_stream_bytes,
  COALESCE(p.unused_segment_bytes, r.zero) AS unused_segment_bytes,
  CASE WHEN e.size IS NOT NULL THEN COALESCE(p.kind_free_bytes, r.zero) END
    AS kind_free_bytes,
  CASE WHEN e.size IS NOT NULL THEN COALESCE(p.kind_largest_free, r.zero) END
    AS kind_largest_free,
  CASE WHEN e.size IS NOT NULL THEN COALESCE(p.kind_hole_count, r.zero) END
    AS kind_hole_count,
  CASE WHEN e.size IS NOT NULL THEN COALESCE(p.kind_other_bytes, r.zero) END
    AS kind_other_bytes,
  CASE WHEN e.size IS NOT NULL THEN COALESCE(p.kind_private_bytes, r.zero) END
    AS kind_private_bytes,
  CASE WHEN e.size IS NOT NULL THEN COALESCE(p.kind_cut_bytes, r.zero) END
    AS kind_cut_bytes,
  CASE WHEN e.size IS NOT NULL THEN COALESCE(p.kind_pending_bytes, r.zero) END
    AS kind_pending_bytes,
  COALESCE(w.workspace_bytes, 0) AS workspace_bytes,
  c.capacity_seen AS capacity_seen,
  e.stream AS stream,
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
