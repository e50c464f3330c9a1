-- Late: how far a job's missed slots were counted and are to run.
-- Why: a catch-up is counted once, not again for each of its slots.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

ALTER TABLE jobs ADD COLUMN catch_up_to INTEGER;
