-- Rollups: what happened to a tenant's slots and runs, counted by minute and by quarter of an hour.
-- Why: an overview is read from counts, not from history, so that it takes the same however much history there is.
-- Locks: nothing that is there; no row is rewritten.
-- Nodes of the previous version may go on: what they do is not counted.

-- `counter` is the first presence of the process that counted. It writes its own rows over, so that a write which is repeated
-- counts nothing twice, and nobody waits for another; readers add up what all of them counted. A row is written every few
-- seconds while its step lasts, so pages keep room for the next version of it.
CREATE TABLE rollups (
    tenant     uuid NOT NULL,
    step       smallint NOT NULL,
    at         bigint NOT NULL,
    counter    uuid NOT NULL,
    expires_at bigint NOT NULL,
    doc        bytea NOT NULL,
    PRIMARY KEY (tenant, step, at, counter)
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);

-- What retention reads. By a moment of its own, so that nobody who reads a tenant's rollups is led through everybody's.
CREATE INDEX rollups_age ON rollups (expires_at);
