-- Secrets: values that targets are sent, sealed.
-- Why: what a job sends to prove who it is stands in no definition any more.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

CREATE TABLE secrets (
    tenant     ANY NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    -- Where it may be sent, with spaces between them.
    hosts      TEXT NOT NULL,
    note       TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    -- The short name of the master key that the value's own key is sealed under.
    master_key TEXT NOT NULL,
    wrapped    BLOB NOT NULL,
    value      BLOB NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- The latest change of secrets, in one row; it only grows.
CREATE TABLE secret_changes (
    one    INTEGER PRIMARY KEY,
    change INTEGER NOT NULL
) STRICT;

INSERT INTO secret_changes (one, change) VALUES (1, 0);
