-- Failures: how many runs of a job in a row have ended dead, for jobs that are paused after so many.
-- Why: history may be gone before the next one.
-- Locks: jobs, for a moment; no row is rewritten.
-- Nodes of the previous version may go on: no job has such a bound while one of them lives.

-- Empty for all other jobs.
ALTER TABLE jobs ADD COLUMN failures integer;
