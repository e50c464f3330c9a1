-- Retention: from when a day of history is kept, and finished jobs by when they finished.
-- Why: a day goes when its keep time has passed since its end and since its last entry, whatever still lives; and nobody
-- reads all jobs to find those that finished.
-- Locks: the file, before it is served, while the jobs are read once.
-- The previous version must have stopped, and cannot open the file afterwards.

-- From when its keep time counts; nothing for its end, unless it was written to long after that.
ALTER TABLE ranges ADD COLUMN kept_from INTEGER;

-- Finished ones wait here for their time to go.
CREATE INDEX jobs_finished ON jobs (state_at) WHERE state = 2;
