-- Call stacks with their frames, one row per stack.
--
-- @param stack  BIGINT = NULL  Only this stack_id; NULL for all.
--
-- @column stack_id     BIGINT   call_stacks.id.
-- @column stack_hash   VARCHAR  MD5 (hex) of frames_json: the same stack has the same hash in every snapshot.
-- @column frames_json  VARCHAR  The stack's frames as JSON, innermost first.
SELECT
  id AS stack_id,
  stack_hash,
  frames_json
FROM call_stacks
WHERE ($stack IS NULL OR id = $stack)
ORDER BY id
