-- Keys: who may call the API.
-- Why: nobody is answered without a key, unless the operator wants it so.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

CREATE TABLE keys (
    id           BLOB PRIMARY KEY,
    tenant       ANY NOT NULL,
    role         INTEGER NOT NULL,
    label        TEXT,
    -- SHA-256 of the secret, which is kept nowhere.
    digest       BLOB NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER,
    revoked_at   INTEGER,
    -- The number of the change that wrote it.
    change       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX keys_tenant ON keys (tenant, id);
CREATE INDEX keys_change ON keys (change);

-- The latest change of keys, in one row; it only grows.
CREATE TABLE key_changes (
    one    INTEGER PRIMARY KEY,
    change INTEGER NOT NULL
) STRICT;

INSERT INTO key_changes (one, change) VALUES (1, 0);
