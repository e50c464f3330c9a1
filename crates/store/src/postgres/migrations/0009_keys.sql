-- Keys: who may call the API.
-- Why: nobody is answered without a key, unless the operator wants it so.
-- Locks: nothing that is there; no row is rewritten.
-- Nodes of the previous version may go on: they ask nobody for a key until they have stopped.

CREATE TABLE keys (
    id           uuid PRIMARY KEY,
    tenant       uuid NOT NULL,
    role         smallint NOT NULL,
    label        text,
    -- SHA-256 of the secret, which is kept nowhere.
    digest       bytea NOT NULL,
    created_at   bigint NOT NULL,
    expires_at   bigint,
    last_used_at bigint,
    revoked_at   bigint,
    -- The number of the change that wrote it.
    change       bigint NOT NULL
);

CREATE INDEX keys_tenant ON keys (tenant, id);
CREATE INDEX keys_change ON keys (change);

-- The latest change of keys, in one row; it only grows. Whoever changes keys locks it first, so that changes are seen in
-- the order of their numbers.
CREATE TABLE key_changes (
    one    boolean PRIMARY KEY CHECK (one),
    change bigint NOT NULL
);

INSERT INTO key_changes (one, change) VALUES (true, 0);
