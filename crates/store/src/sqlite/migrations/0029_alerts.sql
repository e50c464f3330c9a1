-- Alerts: rules, the ends that they may be about, and where each alert stands.
-- Why: somebody is to hear of a run that failed, also when a node is killed between its end and the message.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

-- `only_job` is empty unless the rule is about one job; `channel` is the job that delivers.
CREATE TABLE alerts (
    tenant     ANY NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    only_job   BLOB,
    channel    BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    doc        BLOB NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- Ends that were noted and not considered yet.
CREATE TABLE alert_causes (
    no     INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant ANY NOT NULL,
    job    BLOB NOT NULL,
    run    BLOB NOT NULL,
    state  INTEGER NOT NULL,
    reason INTEGER,
    count  INTEGER NOT NULL,
    at     INTEGER NOT NULL
) STRICT;

-- `step` counts the writes of a row: whoever writes it names the one before.
CREATE TABLE alert_states (
    tenant   ANY NOT NULL,
    alert    TEXT NOT NULL,
    job      BLOB NOT NULL,
    step     INTEGER NOT NULL,
    firing   INTEGER NOT NULL,
    since    INTEGER NOT NULL,
    run      BLOB NOT NULL,
    state    INTEGER NOT NULL,
    reason   INTEGER,
    at       INTEGER NOT NULL,
    causes   INTEGER NOT NULL,
    sent     INTEGER NOT NULL,
    send_at  INTEGER,
    ended_by BLOB,
    ended_at INTEGER,
    PRIMARY KEY (tenant, alert, job)
) STRICT, WITHOUT ROWID;

CREATE INDEX alert_states_due ON alert_states (send_at) WHERE send_at IS NOT NULL;
