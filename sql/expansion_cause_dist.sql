-- Why reserved memory grew, summed up: requests and bytes by device and cause.
--
-- `expansion_causes` says what each cause means and lists the requests one by one.
--
-- @param device  BIGINT = NULL  Only this device_index; NULL for all.
--
-- @column device_id         BIGINT   devices.id.
-- @column device_index      BIGINT   Device, as the snapshot numbers it; -1 is pinned host memory.
-- @column cause             VARCHAR  first, fragmented, pending_free, other_pool or full; NULL without a request.
-- @column expansion_count   BIGINT   Requests that needed new memory.
-- @column grown_bytes       BIGINT   Bytes that were added for them.
-- @column requested_bytes   BIGINT   Bytes of the requests, rounded; NULL without a request.
-- @column most_free_before  BIGINT   The most that was free for the stream and kind when one of them came.
WITH sums AS (
  SELECT
    device_id,
    device_index,
    cause,
    COUNT(*) AS expansion_count,
    SUM(grown_bytes) AS grown_bytes,
    SUM(requested) AS requested_bytes,
    MAX(free_before) AS most_free_before
  FROM expansion_causes
  WHERE ($device IS NULL OR device_index = $device)
  GROUP BY device_id, device_index, cause
)
SELECT
  device_id,
  device_index,
  cause,
  expansion_count,
  grown_bytes,
  requested_bytes,
  most_free_before
FROM sums
ORDER BY device_index, grown_bytes DESC, cause IS NULL, cause
