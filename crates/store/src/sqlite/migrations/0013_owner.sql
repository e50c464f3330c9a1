-- Owners: who made a job.
-- Why: whoever looks after many jobs asks whose they are.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

-- None for jobs that are there: nobody wrote down who made them.
ALTER TABLE defs ADD COLUMN owner TEXT;
