-- The first schema.
-- It is made in one transaction under an advisory lock, before anyone is told that it is there; nothing else is locked.
--
-- Ids are uuids; moments are milliseconds since the epoch; words of ours are small numbers (see rows.rs). The tenant
-- that is always there is the uuid of zeros. Columns that a firing leaves alone come first: what is equal at the front
-- of a row is not logged again.

-- The clock that presences and leases are judged by.
CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE AS
$$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- Whoever writes as an engine. Numbered, so that a claim is four bytes in a row. What `expires_at`, `beaten_at` and
-- `unbroken_at` count is the clock above; `seen_at` is the latest moment that it ever showed to this presence.
CREATE TABLE presences (
    no          integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          uuid NOT NULL UNIQUE,
    node        text NOT NULL,
    joined_at   bigint NOT NULL,
    seen_at     bigint NOT NULL,
    beaten_at   bigint NOT NULL,
    unbroken_at bigint NOT NULL,
    expires_at  bigint NOT NULL,
    ended_at    bigint
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- A holder that has ended holds nothing; the epoch only grows.
CREATE TABLE leases (
    shard  smallint PRIMARY KEY,
    holder integer,
    epoch  bigint NOT NULL
) WITH (fillfactor = 50);

INSERT INTO leases (shard, holder, epoch) SELECT shard, NULL, 0 FROM generate_series(0, 255) shard;

-- The part of a job that every firing changes: narrow rows, many to a page, with room for their next version.
CREATE TABLE jobs (
    id        uuid PRIMARY KEY,
    tenant    uuid NOT NULL,
    shard     smallint NOT NULL,
    version   integer NOT NULL,
    state     smallint NOT NULL,
    state_at  bigint NOT NULL,
    next_slot bigint,
    due_at    bigint,
    slot_last bigint
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.1);

-- What plan reads. Only active jobs have a due_at.
CREATE INDEX jobs_due ON jobs (due_at, id) WHERE due_at IS NOT NULL;

-- Paused, invalid and deleted jobs are few; a firing never touches these.
CREATE INDEX jobs_rare ON jobs (state, id) WHERE state IN (1, 3, 4);

-- Finished ones wait here for their time to go.
CREATE INDEX jobs_finished ON jobs (state_at, id) WHERE state = 2;

-- The part of a job that only edits change. `doc` is the definition without its payload.
CREATE TABLE defs (
    id         uuid PRIMARY KEY,
    tenant     uuid NOT NULL,
    key        text COLLATE "C",
    gone       boolean NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    note       text,
    doc        bytea NOT NULL,
    payload    bytea
);

-- A deleted job's key is free again.
CREATE UNIQUE INDEX defs_key ON defs (tenant, key) WHERE key IS NOT NULL AND NOT gone;

-- What lists read, newest first.
CREATE INDEX defs_tenant ON defs (tenant, id);

CREATE TABLE labels (
    tenant uuid NOT NULL,
    name   text COLLATE "C" NOT NULL,
    value  text COLLATE "C" NOT NULL,
    job    uuid NOT NULL,
    PRIMARY KEY (tenant, name, value, job)
);

-- For taking a job's labels away.
CREATE INDEX labels_job ON labels (job);

CREATE TABLE idempotency (
    tenant     uuid NOT NULL,
    key        text COLLATE "C" NOT NULL,
    digest     bytea NOT NULL,
    job        uuid NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (tenant, key)
);

CREATE INDEX idempotency_age ON idempotency (created_at);

-- Runs that still move. `slot` is empty when it is the moment in the id; `attempts` holds earlier ones. `exclusive`:
-- the end of the run may mean something to its job, which is locked first (see settle.rs).
CREATE TABLE live (
    id            uuid PRIMARY KEY,
    job           uuid NOT NULL,
    tenant        uuid NOT NULL,
    due_at        bigint NOT NULL,
    version       integer NOT NULL,
    attempt       integer NOT NULL,
    lost          integer NOT NULL,
    claim         integer,
    shard         smallint NOT NULL,
    kind          smallint NOT NULL,
    lane          smallint NOT NULL,
    state         smallint NOT NULL,
    ask           smallint,
    waiting       boolean NOT NULL,
    exclusive     boolean NOT NULL,
    slot          bigint,
    replay_of     uuid,
    dispatched_at bigint,
    payload       bytea,
    attempts      bytea
) WITH (fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000);

CREATE INDEX live_job ON live (job);

-- What anyone may claim. A run that is claimed at birth never enters.
CREATE INDEX live_due ON live (due_at, id) WHERE claim IS NULL AND NOT waiting;

-- Marks that holders read with every beat; nearly always empty.
CREATE INDEX live_ask ON live (claim, id) WHERE ask IS NOT NULL;

-- Runs that ended, by the moment in their ids: one partition for each day of UTC, dropped whole.
CREATE TABLE history (
    id            uuid PRIMARY KEY,
    job           uuid NOT NULL,
    tenant        uuid NOT NULL,
    version       integer NOT NULL,
    attempt       integer NOT NULL,
    lost          integer NOT NULL,
    kind          smallint NOT NULL,
    lane          smallint NOT NULL,
    state         smallint NOT NULL,
    reason        smallint,
    outcome       smallint,
    status        integer,
    due_at        bigint,
    dispatched_at bigint,
    settled_at    bigint,
    slot          bigint,
    replay_of     uuid,
    stretch_last  bigint,
    stretch_count bigint,
    error         text,
    output        bytea,
    payload       bytea,
    attempts      bytea
) PARTITION BY RANGE (id);

CREATE INDEX history_job ON history (job, id);

-- Most runs succeed, so the other ends have an index of their own and dead ones are found at once.
CREATE INDEX history_rare ON history (state, id) WHERE state <> 3;
