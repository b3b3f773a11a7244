-- What the device's driver counts beside the allocator's pool, by component of the software, when the snapshot was dumped.
--
-- From the files that torch_npu and its profiler write, read from beside the snapshot into module_memory; no row without
-- them. The pool and the workspaces are part of what the driver counts for APP, the program itself: what is left of APP
-- without them is memory that the program took without the allocator. Where two files tell of a component, that of the
-- dump counts.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id      BIGINT   devices.id.
-- @column device_index   BIGINT   Device, as the snapshot numbers it.
-- @column component      VARCHAR  Component, as the driver calls it, such as HCCL for communication.
-- @column bytes          BIGINT   Bytes it held; NULL where the file does not say.
-- @column peak_bytes     BIGINT   The most bytes it held; NULL likewise.
-- @column pool_bytes     BIGINT   Of bytes, what the snapshot's segments, workspaces included, account for: 0 for all
--   components but APP.
-- @column outside_bytes  BIGINT   The rest of bytes: memory outside the pool.
-- @column source_name    VARCHAR  Name of the file.
WITH held AS (
  SELECT
    device_id,
    SUM(total_size) AS held_bytes
  FROM segments
  GROUP BY device_id
),
ranked AS (
  SELECT
    device_id,
    component,
    bytes,
    peak_bytes,
    source_name,
    ROW_NUMBER() OVER (
      PARTITION BY device_id, component
      ORDER BY bytes IS NULL, time_us IS NOT NULL, source_name DESC
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS position
  FROM module_memory
),
counted AS (
  SELECT
    r.device_id AS device_id,
    r.component AS component,
    r.bytes AS bytes,
    r.peak_bytes AS peak_bytes,
    CASE
      WHEN r.bytes IS NULL THEN NULL
      WHEN r.component <> 'APP' THEN 0
      WHEN h.held_bytes < r.bytes THEN h.held_bytes
      WHEN h.held_bytes IS NULL THEN 0
      ELSE r.bytes
    END AS pool_bytes,
    r.source_name AS source_name
  FROM ranked AS r
  LEFT JOIN held AS h
    ON h.device_id = r.device_id
  WHERE r.position = 1
)
SELECT
  c.device_id AS device_id,
  d.device_index AS device_index,
  c.component AS component,
  c.bytes AS bytes,
  c.peak_bytes AS peak_bytes,
  c.pool_bytes AS pool_bytes,
  c.bytes - c.pool_bytes AS outside_bytes,
  c.source_name AS source_name
FROM counted AS c
JOIN devices AS d
  ON d.id = c.device_id
WHERE ($device IS NULL OR d.device_index = $device)
ORDER BY d.device_index, c.bytes IS NULL, c.bytes - c.pool_bytes DESC, c.component
