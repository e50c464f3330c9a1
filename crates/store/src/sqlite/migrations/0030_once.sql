-- Once: up to which version a job wanted no second delivery.
-- Why: what was dispatched under such a version is not tried again, although the job has been edited since.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

-- None for jobs that always wanted it so, or never did.
ALTER TABLE defs ADD COLUMN once_until INTEGER;
