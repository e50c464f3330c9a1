-- Late: how far a job's missed slots were counted and are to run.
-- Why: a catch-up is counted once, not again for each of its slots.
-- Locks: jobs, for a moment; no row is rewritten.
-- Nodes of the previous version may go on: they count anew for each slot, and leave the column alone.

ALTER TABLE jobs ADD COLUMN catch_up_to bigint;
