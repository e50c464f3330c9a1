-- Once: up to which version a job wanted no second delivery.
-- Why: what was dispatched under such a version is not tried again, although the job has been edited since.
-- Locks: defs, for a moment; no row is rewritten.
-- Nodes of the previous version may go on: of jobs that they edit this stays as it was.

-- None for jobs that always wanted it so, or never did.
ALTER TABLE defs ADD COLUMN once_until integer;
