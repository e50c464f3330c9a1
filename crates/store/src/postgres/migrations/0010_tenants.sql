-- Tenants: who owns jobs, by name.
-- Why: keys are bound to a tenant, and people name it.
-- Locks: nothing that is there; no row is rewritten.
-- Nodes of the previous version may go on: they know no other tenant than the one that is always there.

CREATE TABLE tenants (
    id         uuid PRIMARY KEY,
    name       text COLLATE "C" NOT NULL UNIQUE,
    note       text,
    created_at bigint NOT NULL
);

-- The one that is always there.
INSERT INTO tenants (id, name, created_at) VALUES ('00000000-0000-0000-0000-000000000000', 'default', 0);
