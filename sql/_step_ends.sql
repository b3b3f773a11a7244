-- Where the steps of the program end, one row per step that is seen to its end.
--
-- Annotations come first: ends of `ProfilerStep#…` or `Optimizer.step#…`, the most frequent of them, where they span half
-- of the history or more. Without, steps are inferred from the rhythm of the blocks that live for a short while: a step
-- begins with few, gathers many and ends with few. They are many from 45 % of the usual span on and few from 8 % down; the
-- step ends at the lowest point before the next rise.
--
-- The numbers are the method by which steps are recognised, not thresholds of a judgement: what they find is told as
-- `inferred`, and is judged by the thresholds `leak.*`.
--
-- @kept
-- @column device_id   BIGINT   devices.id.
-- @column step        BIGINT   Number of the step, from 1.
-- @column step_count  BIGINT   Number of the device's last one.
-- @column last_index  BIGINT   trace_index of its last event, to within one slice of _scale.
-- @column origin      VARCHAR  `annotation` or `inferred`.
-- @column name        VARCHAR  Name of the annotation; NULL where it is inferred.
WITH middle AS (
  SELECT
    l.device_id AS device_id,
    l.level AS level,
    NTILE(10) OVER (
      PARTITION BY l.device_id
      ORDER BY l.level, l.slice_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS tenth
  FROM _transient_levels AS l
  JOIN _event_scale AS k
    ON k.device_id = l.device_id
  -- The beginning is warm-up, at the end everything may be torn down.
  WHERE l.slice_index * k.slice_width * 20 >= k.first_index * 17 + k.last_index * 3
    AND l.slice_index * k.slice_width * 20 <= k.first_index * 3 + k.last_index * 17
),
-- One slice in ten may be higher: a single burst is not the usual span.
spans AS (
  SELECT
    device_id,
    MIN(level) AS low,
    MIN(CASE WHEN tenth = 10 THEN level END) - MIN(level) AS span
  FROM middle
  GROUP BY device_id
),
judged AS (
  SELECT
    l.device_id AS device_id,
    l.slice_index AS slice_index,
    l.level AS level,
    CASE WHEN (l.level - s.low) * 100 >= s.span * 45 THEN l.slice_index END AS high_slice,
    CASE WHEN (l.level - s.low) * 100 <= s.span * 8 THEN l.slice_index END AS low_slice
  FROM _transient_levels AS l
  JOIN spans AS s
    ON s.device_id = l.device_id
  WHERE s.span > 0
),
followed AS (
  SELECT
    device_id,
    slice_index,
    level,
    low_slice,
    MAX(high_slice) OVER (
      PARTITION BY device_id
      ORDER BY slice_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS last_high,
    MAX(low_slice) OVER (
      PARTITION BY device_id
      ORDER BY slice_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ) AS last_low
  FROM judged
),
phases AS (
  SELECT
    device_id,
    slice_index,
    level,
    SUM(
      CASE
        WHEN low_slice IS NOT NULL
          AND last_high IS NOT NULL
          AND (last_low IS NULL OR last_high > last_low)
          THEN 1
        ELSE 0
      END
    ) OVER (
      PARTITION BY device_id
      ORDER BY slice_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS step
  FROM followed
),
valleys AS (
  SELECT
    device_id,
    step,
    MAX(step) OVER (PARTITION BY device_id) AS step_count,
    slice_index,
    ROW_NUMBER() OVER (
      PARTITION BY device_id, step
      ORDER BY level, slice_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS place
  FROM phases
  WHERE step > 0
),
-- With fewer than 32 events on average it is single allocations that come and go, not steps.
inferred AS (
  SELECT
    v.device_id AS device_id,
    v.step AS step,
    CASE
      WHEN (v.slice_index + 1) * k.slice_width > k.last_index THEN k.last_index
      ELSE (v.slice_index + 1) * k.slice_width - 1
    END AS last_index
  FROM valleys AS v
  JOIN _event_scale AS k
    ON k.device_id = v.device_id
  WHERE v.place = 1
    AND k.last_index - k.first_index + 1 >= v.step_count * 32
),
annotated AS (
  SELECT
    device_id,
    CASE WHEN SUBSTR(name, 1, 13) = 'ProfilerStep#' THEN 'ProfilerStep#' ELSE name END AS series,
    name,
    trace_index
  FROM annotations
  WHERE stage = 'END'
    AND trace_index IS NOT NULL
    AND device_id IS NOT NULL
    AND (SUBSTR(name, 1, 13) = 'ProfilerStep#' OR SUBSTR(name, 1, 15) = 'Optimizer.step#')
),
-- Two ends between the same events are one.
ends AS (
  SELECT
    device_id,
    series,
    trace_index,
    MIN(name) AS name
  FROM annotated
  GROUP BY device_id, series, trace_index
),
series AS (
  SELECT
    e.device_id AS device_id,
    e.series AS series,
    ROW_NUMBER() OVER (
      PARTITION BY e.device_id
      ORDER BY COUNT(*) DESC, e.series
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS place
  FROM ends AS e
  JOIN _event_scale AS k
    ON k.device_id = e.device_id
  GROUP BY e.device_id, e.series, k.first_index, k.last_index
  HAVING COUNT(*) >= 3
    AND (MAX(e.trace_index) - MIN(e.trace_index)) * 2 >= k.last_index - k.first_index
),
chosen AS (
  SELECT
    e.device_id AS device_id,
    CAST(
      ROW_NUMBER() OVER (
        PARTITION BY e.device_id
        ORDER BY e.trace_index
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
      ) AS BIGINT
    ) AS step,
    e.trace_index AS last_index,
    e.name AS name
  FROM ends AS e
  JOIN series AS s
    ON s.device_id = e.device_id
    AND s.series = e.series
  WHERE s.place = 1
),
steps AS (
  SELECT
    device_id,
    step,
    last_index,
    'annotation' AS origin,
    name
  FROM chosen
  UNION ALL
  SELECT
    i.device_id AS device_id,
    i.step AS step,
    i.last_index AS last_index,
    'inferred' AS origin,
    CAST(NULL AS VARCHAR) AS name
  FROM inferred AS i
  LEFT JOIN series AS s
    ON s.device_id = i.device_id
    AND s.place = 1
  WHERE s.device_id IS NULL
)
SELECT
  device_id,
  step,
  -- From the last step back, the highest number is always that of the last.
  MAX(step) OVER (
    PARTITION BY device_id
    ORDER BY step DESC
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS step_count,
  last_index,
  origin,
  name
FROM steps
