-- Tenants that are being deleted.
-- Why: a tenant may be deleted with all that it has, which takes a while.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

ALTER TABLE tenants ADD COLUMN deleting_at INTEGER;
CREATE INDEX tenants_deleting ON tenants (deleting_at) WHERE deleting_at IS NOT NULL;
