-- The tenant that is always there: its audit entries are in no index of tenants.
-- Why: most stores have one tenant, and every change paid for an index that says nothing there. Once there are others, it gets
-- indexes of its own (`index_default_jobs.sql` and those beside it).
-- Locks: the file, before it is served, while the entries of other tenants are read once.
-- The previous version must have stopped, and cannot open the file afterwards.

DROP INDEX audit_tenant;
CREATE INDEX audit_tenant ON audit (tenant, seq) WHERE tenant <> 0;
