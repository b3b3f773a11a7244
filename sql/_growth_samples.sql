-- Moments at which the memory of each call stack is compared: ends of up to 64 steps, or of 16 equal stretches.
--
-- Where there are fewer than five steps, equal stretches of the history take their place; where it has fewer than 17
-- events, there is no moment. These numbers are the method; how many intervals are needed is the threshold
-- `leak.intervals`, and there are never fewer than 4 of them.
--
-- @kept
-- @column device_id    BIGINT   devices.id.
-- @column sample       BIGINT   Number of the moment, from 1.
-- @column after_index  BIGINT   trace_index of the moment before; -1 for the first.
-- @column last_index   BIGINT   trace_index of the event after which it is.
-- @column origin       VARCHAR  `annotation` or `inferred` for steps, `time` for stretches.
-- @column step         BIGINT   Number of the step that ends there; NULL for stretches.
-- @column step_count   BIGINT   Steps seen to their end; 0 where there is no rhythm.
WITH quarters AS (
  SELECT 0 AS part
  UNION ALL
  SELECT 1 AS part
  UNION ALL
  SELECT 2 AS part
  UNION ALL
  SELECT 3 AS part
),
stretches AS (
  SELECT a.part * 4 + b.part + 1 AS stretch
  FROM quarters AS a
  CROSS JOIN quarters AS b
),
moments AS (
  SELECT
    device_id,
    last_index,
    origin,
    step,
    step_count
  FROM _step_ends
  WHERE step_count >= 5
    AND (
      step_count <= 64
      OR step * 64 / NULLIF(step_count, 0) > (step - 1) * 64 / NULLIF(step_count, 0)
    )
  UNION ALL
  SELECT
    k.device_id AS device_id,
    k.first_index + (k.last_index - k.first_index) * t.stretch / NULLIF(16, 0) AS last_index,
    'time' AS origin,
    CAST(NULL AS BIGINT) AS step,
    COALESCE(s.step_count, 0) AS step_count
  FROM _event_scale AS k
  LEFT JOIN _step_ends AS s
    ON s.device_id = k.device_id
    AND s.step = s.step_count
  CROSS JOIN stretches AS t
  WHERE COALESCE(s.step_count, 0) < 5
    AND k.last_index - k.first_index >= 16
)
SELECT
  device_id,
  CAST(
    ROW_NUMBER() OVER (
      PARTITION BY device_id
      ORDER BY last_index
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS BIGINT
  ) AS sample,
  COALESCE(
    MAX(last_index) OVER (
      PARTITION BY device_id
      ORDER BY last_index
      ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING
    ),
    -1
  ) AS after_index,
  last_index,
  origin,
  step,
  step_count
FROM moments
