-- Frames of some call stacks, for a page that shows these and no others.
--
-- @param ids  VARCHAR = ''  Their call_stacks.id, each between commas: ',4,17,'.
--
-- @column stack_id     BIGINT   call_stacks.id.
-- @column frames_json  VARCHAR  The stack's frames as JSON, innermost first.
SELECT
  c.id AS stack_id,
  c.frames_json AS frames_json
FROM call_stacks AS c
WHERE instr($ids, ',' || CAST(c.id AS VARCHAR) || ',') > 0
  AND c.frames_json IS NOT NULL
ORDER BY c.id
