-- Waiting: why a live run may not start yet, and until when at the most.
-- Why: runs whose target is down wait instead of burning attempts, where everybody can see it.
-- Locks: live, for a moment; no row is rewritten.
-- Nodes of the previous version may go on: such a run is one that waits for its turn to them, which they leave alone or free
-- when the run before it ends; the others wake it in its time.

-- Of a run that is `waiting`: what for, empty if it is for its turn. Once it is woken, `wait_reason` is empty and
-- `wait_until` says when that was.
ALTER TABLE live ADD COLUMN wait_reason smallint, ADD COLUMN wait_until bigint;

-- Apart.

-- Nearly always empty.
CREATE INDEX CONCURRENTLY live_wait ON live (wait_until) WHERE wait_reason IS NOT NULL;
