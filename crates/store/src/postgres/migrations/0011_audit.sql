-- Audit: every change by anyone, and the seals that chain the entries.
-- Why: a company wants to see who changed what, and to know that nobody rewrote it.
-- Locks: nothing that is there; no row is rewritten.
-- Nodes of the previous version may go on: what they change is not entered.

CREATE TABLE audit (
    seq     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      bigint NOT NULL,
    tenant  uuid NOT NULL,
    actor   text NOT NULL,
    key     uuid,
    address text,
    request text,
    action  text NOT NULL,
    subject text NOT NULL,
    before  text,
    after   text
);

CREATE INDEX audit_tenant ON audit (tenant, seq);

CREATE TABLE audit_seals (
    number    bigint PRIMARY KEY,
    from_seq  bigint NOT NULL,
    to_seq    bigint NOT NULL,
    sealed_at bigint NOT NULL,
    -- Numbers that were not there yet: 3-5,9.
    gaps      text NOT NULL,
    -- Numbers of earlier gaps that are there now.
    late      text NOT NULL,
    entries   bigint NOT NULL,
    key       text NOT NULL,
    previous  bytea NOT NULL,
    mac       bytea NOT NULL
);
