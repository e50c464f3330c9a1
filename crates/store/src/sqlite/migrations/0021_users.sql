-- Users: people who log in to the console, what each may do where, their sessions, and links that log in.
-- Why: a browser cannot keep a key, and people change their passwords.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

CREATE TABLE users (
    id         BLOB PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    -- An argon2id hash, with its salt and its cost.
    password   TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE members (
    user_id BLOB NOT NULL,
    tenant  ANY NOT NULL,
    role    INTEGER NOT NULL,
    PRIMARY KEY (user_id, tenant)
) STRICT, WITHOUT ROWID;

CREATE INDEX members_tenant ON members (tenant);

CREATE TABLE sessions (
    -- SHA-256 of the token, which is kept nowhere.
    digest     BLOB PRIMARY KEY,
    -- A user, or the key that a link was made with.
    user_id    BLOB,
    key_id     BLOB,
    tenant     ANY NOT NULL,
    created_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_user ON sessions (user_id, used_at, digest);
CREATE INDEX sessions_key ON sessions (key_id, used_at, digest);
CREATE INDEX sessions_created ON sessions (created_at);
CREATE INDEX sessions_used ON sessions (used_at);

CREATE TABLE console_links (
    digest     BLOB PRIMARY KEY,
    key_id     BLOB NOT NULL,
    tenant     ANY NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX console_links_expires ON console_links (expires_at);
