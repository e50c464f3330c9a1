-- Secrets: values that targets are sent, sealed.
-- Why: what a job sends to prove who it is stands in no definition any more.
-- Locks: nothing that is there; no row is rewritten.
-- Nodes of the previous version may go on: no job uses a secret until they have stopped.

CREATE TABLE secrets (
    tenant     uuid NOT NULL,
    name       text COLLATE "C" NOT NULL,
    version    integer NOT NULL,
    -- Where it may be sent, with spaces between them.
    hosts      text NOT NULL,
    note       text,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    -- The short name of the master key that the value's own key is sealed under.
    master_key text NOT NULL,
    wrapped    bytea NOT NULL,
    value      bytea NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- The latest change of secrets, in one row; it only grows. Whoever changes secrets locks it first, so that changes are seen
-- in the order of their numbers.
CREATE TABLE secret_changes (
    one    boolean PRIMARY KEY CHECK (one),
    change bigint NOT NULL
);

INSERT INTO secret_changes (one, change) VALUES (true, 0);
