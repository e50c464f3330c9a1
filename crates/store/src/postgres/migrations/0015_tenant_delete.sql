-- Tenants that are being deleted.
-- Why: a tenant may be deleted with all that it has, which takes a while.
-- Locks: tenants, for a moment; no row is rewritten.
-- Nodes of the previous version may go on: they refuse the keys of such a tenant, which are revoked, and leave the rest to others.

ALTER TABLE tenants ADD COLUMN deleting_at bigint;
CREATE INDEX tenants_deleting ON tenants (deleting_at) WHERE deleting_at IS NOT NULL;
