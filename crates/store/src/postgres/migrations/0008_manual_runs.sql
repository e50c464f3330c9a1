-- Manual runs: how many of a job were ever started by hand.
-- Why: a firing sees by it that one was started since plan looked; a late slot of a job that never had a run need not look
-- for one that was in its way.
-- Locks: jobs, for a moment; no row is rewritten.
-- Nodes of the previous version may go on: they count none, so that a run which is started by hand in the very moment of
-- a slot may run beside it until they have stopped.

-- None for a job that has had none. Jobs that are there may have had some.
ALTER TABLE jobs ADD COLUMN manual_runs integer DEFAULT 1;
ALTER TABLE jobs ALTER COLUMN manual_runs DROP DEFAULT;
