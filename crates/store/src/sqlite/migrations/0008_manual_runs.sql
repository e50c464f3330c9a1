-- Manual runs: how many of a job were ever started by hand.
-- Why: a late slot of a job that never had a run need not look for one that was in its way.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

-- Jobs that are there may have had some.
ALTER TABLE jobs ADD COLUMN manual_runs INTEGER NOT NULL DEFAULT 1;
