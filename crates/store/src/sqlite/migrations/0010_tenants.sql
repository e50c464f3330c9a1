-- Tenants: who owns jobs, by name.
-- Why: keys are bound to a tenant, and people name it.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

CREATE TABLE tenants (
    id         ANY PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    note       TEXT,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The one that is always there.
INSERT INTO tenants (id, name, created_at) VALUES (0, 'default', 0);
