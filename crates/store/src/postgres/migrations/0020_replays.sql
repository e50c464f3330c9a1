-- Replays in bulk, and backfills: what somebody wants run, and how far it is.
-- Why: dead runs are replayed by the thousand, and past slots are run on purpose, paced, also when nodes die meanwhile.
-- Locks: nothing that is there; no row is rewritten.
-- Nodes of the previous version may go on: they work on no replay.

CREATE TABLE replays (
    id         uuid PRIMARY KEY,
    tenant     uuid NOT NULL,
    state      smallint NOT NULL,
    created_at bigint NOT NULL,
    actor      text NOT NULL,
    rate       integer NOT NULL,
    run_limit  bigint NOT NULL,
    -- What is to be run.
    doc        bytea NOT NULL,
    payload    bytea,
    -- Counts the writes of progress: whoever writes it names the one before.
    step       integer NOT NULL,
    cursor     uuid,
    scanned    bigint NOT NULL,
    started    bigint NOT NULL,
    skipped    bigint NOT NULL,
    updated_at bigint NOT NULL,
    ended_at   bigint,
    note       text
) WITH (fillfactor = 50);

CREATE INDEX replays_tenant ON replays (tenant, id);

-- What nodes look for, every second.
CREATE INDEX replays_running ON replays (id) WHERE ended_at IS NULL;

CREATE INDEX replays_ended ON replays (ended_at) WHERE ended_at IS NOT NULL;
