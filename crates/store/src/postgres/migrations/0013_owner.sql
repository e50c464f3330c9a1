-- Owners: who made a job.
-- Why: whoever looks after many jobs asks whose they are.
-- Locks: defs, for a moment; no row is rewritten.
-- Nodes of the previous version may go on: jobs that they create have no owner, and those that they change keep theirs.

-- None for jobs that are there: nobody wrote down who made them.
ALTER TABLE defs ADD COLUMN owner text;
