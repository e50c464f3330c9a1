-- Audit: every change by anyone, and the seals that chain the entries.
-- Why: a company wants to see who changed what, and to know that nobody rewrote it.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

CREATE TABLE audit (
    -- Numbers never come again, also when the newest entry is gone.
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    tenant  ANY NOT NULL,
    actor   TEXT NOT NULL,
    key     BLOB,
    address TEXT,
    request TEXT,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,
    before  TEXT,
    after   TEXT
) STRICT;

CREATE INDEX audit_tenant ON audit (tenant, seq);

CREATE TABLE audit_seals (
    number    INTEGER PRIMARY KEY,
    from_seq  INTEGER NOT NULL,
    to_seq    INTEGER NOT NULL,
    sealed_at INTEGER NOT NULL,
    -- Numbers that were not there yet: 3-5,9.
    gaps      TEXT NOT NULL,
    -- Numbers of earlier gaps that are there now.
    late      TEXT NOT NULL,
    entries   INTEGER NOT NULL,
    key       TEXT NOT NULL,
    previous  BLOB NOT NULL,
    mac       BLOB NOT NULL
) STRICT;
