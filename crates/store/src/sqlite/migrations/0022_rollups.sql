-- Rollups: what happened to a tenant's slots and runs, counted by minute and by quarter of an hour.
-- Why: an overview is read from counts, not from history, so that it takes the same however much history there is.
-- Locks: nothing that is there; no row is rewritten.
-- Nodes of the previous version may go on: what they do is not counted.

-- `counter` is the first presence of the process that counted. It writes its own rows over, so that a write which is repeated
-- counts nothing twice; readers add up what all of them counted.
CREATE TABLE rollups (
    tenant     ANY NOT NULL,
    step       INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    counter    BLOB NOT NULL,
    expires_at INTEGER NOT NULL,
    doc        BLOB NOT NULL,
    PRIMARY KEY (tenant, step, at, counter)
) STRICT, WITHOUT ROWID;

-- What retention reads.
CREATE INDEX rollups_age ON rollups (expires_at);
