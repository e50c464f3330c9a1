-- Failures: how many runs of a job in a row have ended dead, for jobs that are paused after so many.
-- Why: history may be gone before the next one.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

-- Empty for all other jobs.
ALTER TABLE jobs ADD COLUMN failures INTEGER;

CREATE INDEX jobs_counting ON jobs (id) WHERE failures IS NOT NULL;
