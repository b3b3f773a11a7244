-- Call stacks by how much more or less they hold in this snapshot than in another: of each device, largest change first.
--
-- Stacks are the same when their functions and the last two parts of their file names are: line numbers drift with
-- every edit, folders differ between machines, and an address is no identity. What is held at the end are blocks in
-- state active_allocated, at the peak what lived when allocated was highest; the larger of both changes counts. What
-- several stacks of a snapshot hold that are the same but for their lines is one row: stack_count says how many.
--
-- @engine datafusion
-- @needs base
--
-- @param limit   BIGINT = 20    Only the largest changes of each device; NULL for all.
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_index      BIGINT   Device, as the snapshots number it; -1 is pinned host memory.
-- @column stack_id          BIGINT   call_stacks.id, the lowest of those that are the same; NULL where this snapshot has
--   none, and for blocks without a stack.
-- @column base_stack_id     BIGINT   call_stacks.id in `base`; NULL likewise.
-- @column live_bytes        BIGINT   Bytes held at the end of this snapshot, rounding included.
-- @column base_bytes        BIGINT   Bytes held at the end of `base`.
-- @column live_change       BIGINT   live_bytes - base_bytes.
-- @column live_count        BIGINT   Blocks at the end of this snapshot.
-- @column base_count        BIGINT   Blocks at the end of `base`.
-- @column peak_bytes        BIGINT   Bytes held at the peak of this snapshot, rounding included; NULL where that peak is
--   not known, as where no event was recorded.
-- @column base_peak         BIGINT   Bytes held at the peak of `base`; NULL likewise.
-- @column peak_change       BIGINT   peak_bytes - base_peak; NULL where either is.
-- @column frames_json       VARCHAR  The stack's frames as JSON, innermost first: of this snapshot, else of `base`; NULL
--   for blocks without a stack.
-- @column stack_count       BIGINT   Stacks of this snapshot that the row adds up; 0 where stack_id is NULL.
-- @column base_stack_count  BIGINT   Stacks of `base` that the row adds up.
WITH both_sides AS (
  SELECT
    1 AS is_own,
    h.device_index AS device_index,
    h.stack_id AS stack_id,
    h.live_bytes AS live_bytes,
    h.live_count AS live_count,
    h.peak_bytes AS peak_bytes,
    k.frames_json AS frames_json
  FROM _held_by_stack AS h
  LEFT JOIN call_stacks AS k
    ON k.id = h.stack_id
  WHERE ($device IS NULL OR h.device_index = $device)
  UNION ALL
  SELECT
    0 AS is_own,
    h.device_index AS device_index,
    h.stack_id AS stack_id,
    h.live_bytes AS live_bytes,
    h.live_count AS live_count,
    h.peak_bytes AS peak_bytes,
    k.frames_json AS frames_json
  FROM base._held_by_stack AS h
  LEFT JOIN base.call_stacks AS k
    ON k.id = h.stack_id
  WHERE ($device IS NULL OR h.device_index = $device)
),
-- Line numbers first, then all but the last two parts of a file's name.
keyed AS (
  SELECT
    is_own,
    device_index,
    stack_id,
    live_bytes,
    live_count,
    peak_bytes,
    frames_json,
    regexp_replace(
      regexp_replace(
        replace(COALESCE(frames_json, ''), '\\', '/'),
        '"line": ?-?[0-9]+', '"line": 0', 'g'
      ),
      '("filename": ?")[^"]*/([^"/]*/[^"/]*")', '${1}${2}', 'g'
    ) AS stack_key
  FROM both_sides
),
paired AS (
  SELECT
    device_index,
    stack_key,
    MIN(CASE WHEN is_own = 1 THEN stack_id END) AS stack_id,
    COUNT(CASE WHEN is_own = 1 THEN stack_id END) AS stack_count,
    MIN(CASE WHEN is_own = 0 THEN stack_id END) AS base_stack_id,
    COUNT(CASE WHEN is_own = 0 THEN stack_id END) AS base_stack_count,
    SUM(CASE WHEN is_own = 1 THEN live_bytes ELSE 0 END) AS live_bytes,
    SUM(CASE WHEN is_own = 0 THEN live_bytes ELSE 0 END) AS base_bytes,
    SUM(CASE WHEN is_own = 1 THEN live_count ELSE 0 END) AS live_count,
    SUM(CASE WHEN is_own = 0 THEN live_count ELSE 0 END) AS base_count,
    SUM(CASE WHEN is_own = 1 THEN COALESCE(peak_bytes, 0) ELSE 0 END) AS peak_bytes,
    SUM(CASE WHEN is_own = 0 THEN COALESCE(peak_bytes, 0) ELSE 0 END) AS base_peak
  FROM keyed
  GROUP BY device_index, stack_key
),
-- Where no peak of the device is known, what a stack held there is not known either.
known AS (
  SELECT
    device_index,
    MAX(is_own) AS own_peak,
    MAX(1 - is_own) AS base_peak
  FROM (
    SELECT
      1 AS is_own,
      device_index
    FROM _known_peaks
    UNION ALL
    SELECT
      0 AS is_own,
      device_index
    FROM base._known_peaks
  ) AS both_peaks
  GROUP BY device_index
),
changes AS (
  SELECT
    p.device_index AS device_index,
    p.stack_key AS stack_key,
    p.stack_id AS stack_id,
    p.stack_count AS stack_count,
    p.base_stack_id AS base_stack_id,
    p.base_stack_count AS base_stack_count,
    p.live_bytes AS live_bytes,
    p.base_bytes AS base_bytes,
    p.live_bytes - p.base_bytes AS live_change,
    p.live_count AS live_count,
    p.base_count AS base_count,
    CASE WHEN k.own_peak = 1 THEN p.peak_bytes END AS peak_bytes,
    CASE WHEN k.base_peak = 1 THEN p.base_peak END AS base_peak,
    CASE WHEN k.own_peak = 1 AND k.base_peak = 1 THEN p.peak_bytes - p.base_peak END
      AS peak_change
  FROM paired AS p
  LEFT JOIN known AS k
    ON k.device_index = p.device_index
),
ranked AS (
  SELECT
    device_index,
    stack_id,
    stack_count,
    base_stack_id,
    base_stack_count,
    live_bytes,
    base_bytes,
    live_change,
    live_count,
    base_count,
    peak_bytes,
    base_peak,
    peak_change,
    ROW_NUMBER() OVER (
      PARTITION BY device_index
      ORDER BY
        CASE
          WHEN ABS(live_change) > COALESCE(ABS(peak_change), 0) THEN ABS(live_change)
          ELSE COALESCE(ABS(peak_change), 0)
        END DESC,
        ABS(live_change) DESC,
        stack_key
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS place
  FROM changes
)
SELECT
  r.device_index AS device_index,
  r.stack_id AS stack_id,
  r.base_stack_id AS base_stack_id,
  r.live_bytes AS live_bytes,
  r.base_bytes AS base_bytes,
  r.live_change AS live_change,
  r.live_count AS live_count,
  r.base_count AS base_count,
  r.peak_bytes AS peak_bytes,
  r.base_peak AS base_peak,
  r.peak_change AS peak_change,
  COALESCE(k.frames_json, b.frames_json) AS frames_json,
  r.stack_count AS stack_count,
  r.base_stack_count AS base_stack_count
FROM ranked AS r
LEFT JOIN call_stacks AS k
  ON k.id = r.stack_id
LEFT JOIN base.call_stacks AS b
  ON b.id = r.base_stack_id
WHERE ($limit IS NULL OR r.place <= $limit)
ORDER BY r.device_index, r.place
