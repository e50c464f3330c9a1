-- Users: people who log in to the console, what each may do where, their sessions, and links that log in.
-- Why: a browser cannot keep a key, and people change their passwords.
-- Locks: nothing that is there; no row is rewritten.
-- Nodes of the previous version may go on: nobody can log in to them.

CREATE TABLE users (
    id         uuid PRIMARY KEY,
    name       text NOT NULL UNIQUE,
    -- An argon2id hash, with its salt and its cost.
    password   text NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
);

CREATE TABLE members (
    user_id uuid NOT NULL,
    tenant  uuid NOT NULL,
    role    smallint NOT NULL,
    PRIMARY KEY (user_id, tenant)
);

CREATE INDEX members_tenant ON members (tenant);

CREATE TABLE sessions (
    -- SHA-256 of the token, which is kept nowhere.
    digest     bytea PRIMARY KEY,
    -- A user, or the key that a link was made with.
    user_id    uuid,
    key_id     uuid,
    tenant     uuid NOT NULL,
    created_at bigint NOT NULL,
    used_at    bigint NOT NULL
);

CREATE INDEX sessions_user ON sessions (user_id, used_at, digest);
CREATE INDEX sessions_key ON sessions (key_id, used_at, digest);
CREATE INDEX sessions_created ON sessions (created_at);
CREATE INDEX sessions_used ON sessions (used_at);

CREATE TABLE console_links (
    digest     bytea PRIMARY KEY,
    key_id     uuid NOT NULL,
    tenant     uuid NOT NULL,
    expires_at bigint NOT NULL
);

CREATE INDEX console_links_expires ON console_links (expires_at);
