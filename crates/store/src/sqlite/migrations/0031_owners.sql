-- Owners: the jobs of each, by tenant.
-- Why: whose jobs there are was found by a walk through all that a tenant has.
-- Locks: the file, before it is served, while definitions are read once.
-- The previous version must have stopped, and cannot open the file afterwards.

CREATE INDEX defs_owner ON defs (tenant, owner) WHERE owner IS NOT NULL;
