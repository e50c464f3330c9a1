-- Handed over: attempts whose work is with the outside.
-- Why: a target may answer at once and report later; what is known of it meanwhile must survive every node.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

-- A live run that is handed over has the claim -1, which is nobody's. Rows here outlive an attempt that ended while its run
-- goes on: then nobody is trusted.
CREATE TABLE handed (
    run           BLOB PRIMARY KEY,
    job           BLOB NOT NULL,
    attempt       INTEGER NOT NULL,
    node          TEXT,
    dispatched_at INTEGER NOT NULL,
    beat_within   INTEGER NOT NULL,
    timeout_at    INTEGER NOT NULL,
    trusted_until INTEGER,
    cancelled     INTEGER NOT NULL,
    beaten_at     INTEGER,
    progress      TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX handed_until ON handed (trusted_until) WHERE trusted_until IS NOT NULL;

-- Apart, because heartbeats write the rows above.
CREATE TABLE checkpoints (
    run   BLOB PRIMARY KEY,
    bytes BLOB NOT NULL
) STRICT;

-- The head and the tail of what runs say of their work.
CREATE TABLE run_logs (
    run   BLOB PRIMARY KEY,
    head  BLOB NOT NULL,
    tail  BLOB NOT NULL,
    total INTEGER NOT NULL
) STRICT;

-- What tokens of handed-over attempts are made with: wrapped by the master key that is named, or plain.
CREATE TABLE report_keys (
    id         TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    master_key TEXT,
    bytes      BLOB NOT NULL
) STRICT;
