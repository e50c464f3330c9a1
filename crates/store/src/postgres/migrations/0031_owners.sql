-- Owners: the jobs of each, by tenant.
-- Why: whose jobs there are was found by a walk through all that a tenant has.
-- Locks: nothing. Until the index is made, lists by owner sort all that a tenant has.
-- Nodes of the previous version may go on: their lists walk as before.

SELECT 1;

-- Apart.

CREATE INDEX CONCURRENTLY defs_owner ON defs (tenant, owner, id) WHERE owner IS NOT NULL;
