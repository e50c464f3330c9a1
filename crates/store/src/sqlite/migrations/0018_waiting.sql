-- Waiting: why a live run may not start yet, and until when at the most.
-- Why: runs whose target is down wait instead of burning attempts, where everybody can see it.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

-- `waiting` is 0, 1 for a run that waits for its turn, or 2 for one that waits for what `wait_reason` says. Once such a run
-- is woken, `wait_reason` is empty and `wait_until` says when that was.
ALTER TABLE live ADD COLUMN wait_reason INTEGER;
ALTER TABLE live ADD COLUMN wait_until INTEGER;

-- Nearly always empty.
CREATE INDEX live_wait ON live (wait_until) WHERE wait_reason IS NOT NULL;
