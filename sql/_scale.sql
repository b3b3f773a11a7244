-- How events are measured: a single row.
--
-- A block has `(size + padding + 511) / 512 * 512` bytes, unless _rounding_excess has a row for its events. A slice is
-- a run of slice_width events: sums over slices stand in for the events where a query wants a view of the whole
-- history. There are 20,000 slices at most, however long the history.
--
-- @kept
-- @column padding      BIGINT  Bytes the allocator adds to a request before it rounds.
-- @column slice_width  BIGINT  Events of a slice.
SELECT
  COALESCE(MAX(block_padding), 0) AS padding,
  COALESCE(MAX(event_count), 0) / NULLIF(20000, 0) + 1 AS slice_width
FROM snapshot
