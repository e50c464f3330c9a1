-- Handed over: attempts whose work is with the outside.
-- Why: a target may answer at once and report later; what is known of it meanwhile must survive every node.
-- Locks: nothing that is there; no row is rewritten.
-- Nodes of the previous version may go on: no attempt is handed over until all of them are gone, because the definitions
-- that allow it need a higher level.

-- A live run that is handed over has the claim -1, which is nobody's. Rows here outlive an attempt that ended while its run
-- goes on: then nobody is trusted. Heartbeats write rows again and again.
CREATE TABLE handed (
    run           uuid PRIMARY KEY,
    job           uuid NOT NULL,
    dispatched_at bigint NOT NULL,
    beat_within   bigint NOT NULL,
    timeout_at    bigint NOT NULL,
    trusted_until bigint,
    beaten_at     bigint,
    attempt       integer NOT NULL,
    shard         smallint NOT NULL,
    cancelled     boolean NOT NULL,
    node          text,
    progress      text
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000);

CREATE INDEX handed_until ON handed (trusted_until) WHERE trusted_until IS NOT NULL;

-- Apart, because heartbeats write the rows above.
CREATE TABLE checkpoints (
    run   uuid PRIMARY KEY,
    bytes bytea NOT NULL
);

-- The head and the tail of what runs say of their work.
CREATE TABLE run_logs (
    run   uuid PRIMARY KEY,
    head  bytea NOT NULL,
    tail  bytea NOT NULL,
    total bigint NOT NULL
);

-- What tokens of handed-over attempts are made with: wrapped by the master key that is named, or plain.
CREATE TABLE report_keys (
    id         text PRIMARY KEY,
    created_at bigint NOT NULL,
    master_key text,
    bytes      bytea NOT NULL
);
