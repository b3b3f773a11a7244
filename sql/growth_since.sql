-- What each call stack holds at the end compared with an earlier moment, most growth first.
--
-- Sizes are those of allocated blocks, rounding included; what waits for a pending free is left out. Growth of all
-- stacks adds up to the change of `allocated` between the event and the end, less what `unexplained` of live_at changed.
--
-- @param event   BIGINT = -1    trace_index of the event; -1 for the moment before the first one. A number beyond the
--   events there are stands for that moment or the end, and `npusnap sql` says so on standard error.
-- @param device  BIGINT = NULL  Only this device_index; NULL for all: an event of each is another moment.
-- @param limit   BIGINT = 20    Only the first rows of each device; NULL for all.
--
-- @column device_id     BIGINT  devices.id.
-- @column device_index  BIGINT  Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column stack_id      BIGINT  call_stacks.id; NULL for all blocks of which no stack was recorded.
-- @column growth_size   BIGINT  size_now - size_then.
-- @column growth_count  BIGINT  Blocks it holds more.
-- @column size_then     BIGINT  Bytes it held after the event.
-- @column size_now      BIGINT  Bytes it holds at the end.
-- @column kept_size     BIGINT  Of size_now, bytes in blocks that it held already after the event.
WITH blocks AS (
  SELECT
    device_id,
    stack_id,
    block_size,
    CASE
      WHEN (alloc_index IS NULL OR alloc_index <= $event)
        AND (allocated_until IS NULL OR allocated_until > $event)
        THEN 1
      ELSE 0
    END AS was_live,
    CASE WHEN allocated_until IS NULL THEN 1 ELSE 0 END AS is_live
  FROM _sized_allocations
),
sums AS (
  SELECT
    device_id,
    stack_id,
    SUM((is_live - was_live) * block_size) AS growth_size,
    SUM(is_live - was_live) AS growth_count,
    SUM(was_live * block_size) AS size_then,
    SUM(is_live * block_size) AS size_now,
    SUM(was_live * is_live * block_size) AS kept_size
  FROM blocks
  WHERE is_live = 1
    OR was_live = 1
  GROUP BY device_id, stack_id
),
ranked AS (
  SELECT
    device_id,
    stack_id,
    growth_size,
    growth_count,
    size_then,
    size_now,
    kept_size,
    ROW_NUMBER() OVER (
      PARTITION BY device_id
      ORDER BY growth_size DESC, stack_id IS NULL, stack_id
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS place
  FROM sums
)
SELECT
  r.device_id AS device_id,
  d.device_index AS device_index,
  r.stack_id AS stack_id,
  r.growth_size AS growth_size,
  r.growth_count AS growth_count,
  r.size_then AS size_then,
  r.size_now AS size_now,
  r.kept_size AS kept_size
FROM ranked AS r
JOIN devices AS d
  ON d.id = r.device_id
WHERE ($device IS NULL OR d.device_index = $device)
  AND ($limit IS NULL OR r.place <= $limit)
ORDER BY r.growth_size DESC, d.device_index, r.stack_id IS NULL, r.stack_id
