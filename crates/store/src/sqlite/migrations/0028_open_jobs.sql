-- Open jobs: those that are not finished, by tenant.
-- Why: a tenant's active jobs were found by a walk through all that it has, finished ones included, and these may be many.
-- Locks: the file, before it is served, while the jobs of other tenants than the one that is always there are read once.
-- The previous version must have stopped, and cannot open the file afterwards.

-- The tenant that is always there gets one of its own, once there are others (`index_default_open.sql`): until then nothing is paid
-- for it.
CREATE INDEX jobs_open ON jobs (tenant) WHERE state <> 2 AND tenant <> 0;
