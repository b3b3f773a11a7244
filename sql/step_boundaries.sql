-- The steps of the program that are seen to their end, one row per step, oldest first.
--
-- Annotations tell them where there are any: ends of `ProfilerStep#…` or `Optimizer.step#…`. Without, they are inferred
-- from the rhythm of the blocks that live for a short while only, and origin says so: a period of memory is then
-- what is called a step, be it a training step, a microbatch or a request. Where no rhythm is found, or its
-- periods have fewer than 32 events on average, there are no rows.
-- A step begins where those blocks hold 8 % of their usual span or less, rises to 45 % or more and ends at the lowest
-- point before the next rise; annotations count where there are three or more that span half of the history.
-- What comes after the last row is a step that the recording does not see the end of.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id     BIGINT   devices.id.
-- @column device_index  BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column step          BIGINT   Number of the step within the history, from 1.
-- @column first_index   BIGINT   trace_index of its first event.
-- @column last_index    BIGINT   trace_index of its last event, to within 1/20,000 of the history.
-- @column origin        VARCHAR  `annotation` or `inferred`.
-- @column name          VARCHAR  Name of the annotation; NULL where the step is inferred.
WITH steps AS (
  SELECT
    device_id,
    step,
    MAX(last_index) OVER (
      PARTITION BY device_id
      ORDER BY step
      ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING
    ) AS previous_index,
    last_index,
    origin,
    name
  FROM _step_ends
)
SELECT
  s.device_id AS device_id,
  d.device_index AS device_index,
  s.step AS step,
  COALESCE(s.previous_index + 1, k.first_index) AS first_index,
  s.last_index AS last_index,
  s.origin AS origin,
  s.name AS name
FROM steps AS s
JOIN _event_scale AS k
  ON k.device_id = s.device_id
JOIN devices AS d
  ON d.id = s.device_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index, s.step
