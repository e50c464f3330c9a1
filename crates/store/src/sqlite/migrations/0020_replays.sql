-- Replays in bulk, and backfills: what somebody wants run, and how far it is.
-- Why: dead runs are replayed by the thousand, and past slots are run on purpose, paced, also when nodes die meanwhile.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

CREATE TABLE replays (
    id         BLOB PRIMARY KEY,
    tenant     ANY NOT NULL,
    state      INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    actor      TEXT NOT NULL,
    rate       INTEGER NOT NULL,
    run_limit  INTEGER NOT NULL,
    -- What is to be run.
    doc        BLOB NOT NULL,
    payload    BLOB,
    -- Counts the writes of progress: whoever writes it names the one before.
    step       INTEGER NOT NULL,
    cursor     BLOB,
    scanned    INTEGER NOT NULL,
    started    INTEGER NOT NULL,
    skipped    INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    ended_at   INTEGER,
    note       TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX replays_tenant ON replays (tenant, id);

-- What nodes look for, every second.
CREATE INDEX replays_running ON replays (id) WHERE ended_at IS NULL;

CREATE INDEX replays_ended ON replays (ended_at) WHERE ended_at IS NOT NULL;
