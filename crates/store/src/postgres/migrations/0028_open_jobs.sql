-- Open jobs: those that are not finished, by tenant.
-- Why: a tenant's active jobs were found by a walk through all that it has, finished ones included, and these may be many.
-- Locks: nothing. Until the index is made, lists of open jobs take as long as before, or longer.
-- Nodes of the previous version may go on: their lists walk as before.

SELECT 1;

-- Apart.

-- Of every tenant but the one that is always there: most stores have no other, and a firing pays nothing for it.
CREATE INDEX CONCURRENTLY jobs_open ON jobs (tenant, id) WHERE state <> 2 AND tenant <> '00000000-0000-0000-0000-000000000000';
