-- settle and others: the table of one day of history, made when its first run ends.
-- Most runs succeed, so the other ends have an index of their own and a tenant's dead ones are found at once. Runs of every
-- tenant but the one that is always there have one too: most stores have no other, and pay nothing for it.
CREATE TABLE history_{day} (
    id            BLOB PRIMARY KEY,
    job           BLOB NOT NULL,
    tenant        ANY NOT NULL,
    kind          INTEGER NOT NULL,
    slot          INTEGER,
    replay_of     BLOB,
    due_at        INTEGER,
    lane          INTEGER NOT NULL,
    state         INTEGER NOT NULL,
    reason        INTEGER,
    attempt       INTEGER NOT NULL,
    lost          INTEGER NOT NULL,
    version       INTEGER NOT NULL,
    dispatched_at INTEGER,
    settled_at    INTEGER,
    outcome       INTEGER,
    status        INTEGER,
    error         TEXT,
    output        BLOB,
    stretch_last  INTEGER,
    stretch_count INTEGER,
    payload       BLOB,
    attempts      BLOB,
    note          TEXT,
    actor         TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX history_{day}_job ON history_{day} (job);

CREATE INDEX history_{day}_rare ON history_{day} (tenant, state) WHERE state <> 3;

CREATE INDEX history_{day}_tenant ON history_{day} (tenant) WHERE tenant <> 0;

INSERT INTO ranges (day) VALUES ({day});
