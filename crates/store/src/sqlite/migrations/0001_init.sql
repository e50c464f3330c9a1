-- The first schema.
-- It is made in one transaction, before the file is ours to anyone else; nothing is locked but the file itself.
--
-- Ids are 16 bytes; moments are milliseconds since the epoch; words of ours are small numbers (see rows.rs).
-- A tenant is 0 for the one that is always there, else its id.

-- Whoever writes as an engine. Numbered, so that a claim is a byte or two in a row.
CREATE TABLE presences (
    no        INTEGER PRIMARY KEY AUTOINCREMENT,
    id        BLOB NOT NULL UNIQUE,
    node      TEXT NOT NULL,
    joined_at INTEGER NOT NULL,
    ended_at  INTEGER
) STRICT;

-- A holder that has ended holds nothing; the epoch only grows.
CREATE TABLE leases (
    shard  INTEGER PRIMARY KEY,
    holder INTEGER,
    epoch  INTEGER NOT NULL
) STRICT;

-- The part of a job that every firing changes: narrow rows, many to a page.
CREATE TABLE jobs (
    id        BLOB PRIMARY KEY,
    tenant    ANY NOT NULL,
    state     INTEGER NOT NULL,
    version   INTEGER NOT NULL,
    next_slot INTEGER,
    due_at    INTEGER,
    slot_last INTEGER,
    state_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What plan reads. Only active jobs have a due_at.
CREATE INDEX jobs_due ON jobs (due_at) WHERE due_at IS NOT NULL;

-- Paused, invalid and deleted jobs are few; a firing never touches these.
-- (Not IN: for that SQLite makes a table of its own at every write.)
CREATE INDEX jobs_rare ON jobs (state) WHERE state = 1 OR state > 2;

-- The part of a job that only edits change. `doc` is the definition without its payload.
CREATE TABLE defs (
    id         BLOB PRIMARY KEY,
    tenant     ANY NOT NULL,
    key        TEXT,
    gone       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    note       TEXT,
    doc        BLOB NOT NULL,
    payload    BLOB
) STRICT, WITHOUT ROWID;

-- A deleted job's key is free again.
CREATE UNIQUE INDEX defs_key ON defs (tenant, key) WHERE key IS NOT NULL AND gone = 0;

CREATE TABLE labels (
    tenant ANY NOT NULL,
    name   TEXT NOT NULL,
    value  TEXT NOT NULL,
    job    BLOB NOT NULL,
    PRIMARY KEY (tenant, name, value, job)
) STRICT, WITHOUT ROWID;

-- For taking a job's labels away.
CREATE INDEX labels_job ON labels (job);

CREATE TABLE idempotency (
    tenant     ANY NOT NULL,
    key        TEXT NOT NULL,
    digest     BLOB NOT NULL,
    job        BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_age ON idempotency (created_at);

-- Runs that still move. `slot` is empty when it is the moment in the id; `attempts` holds earlier ones.
CREATE TABLE live (
    id            BLOB PRIMARY KEY,
    job           BLOB NOT NULL,
    tenant        ANY NOT NULL,
    kind          INTEGER NOT NULL,
    slot          INTEGER,
    replay_of     BLOB,
    due_at        INTEGER NOT NULL,
    lane          INTEGER NOT NULL,
    state         INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    lost          INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    claim         INTEGER,
    ask           INTEGER,
    waiting       INTEGER NOT NULL,
    dispatched_at INTEGER,
    payload       BLOB,
    attempts      BLOB
) STRICT, WITHOUT ROWID;

CREATE INDEX live_job ON live (job);

-- What anyone may claim. A run that is claimed at birth never enters.
CREATE INDEX live_due ON live (due_at) WHERE claim IS NULL AND waiting = 0;

-- Runs that wait for another of their job to end; nearly always empty.
CREATE INDEX live_waiting ON live (job) WHERE waiting = 1;

-- Marks that holders read with every beat; nearly always empty.
CREATE INDEX live_ask ON live (claim) WHERE ask IS NOT NULL;

-- The latest moment seen, in one row, to the second: tells at the next start whether the clock went back.
CREATE TABLE clock (
    one  INTEGER PRIMARY KEY,
    seen INTEGER NOT NULL
) STRICT;

INSERT INTO clock (one, seen) VALUES (1, 0);

-- The days of UTC that have a table of history, numbered from the epoch.
CREATE TABLE ranges (
    day INTEGER PRIMARY KEY
) STRICT;
