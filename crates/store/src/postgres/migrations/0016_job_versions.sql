-- Versions of jobs: what a definition was before it was changed.
-- Why: people want to see what changed, and to go back.
-- Locks: nothing that is there; no row is rewritten.
-- Nodes of the previous version may go on: of what they change no version is kept.

CREATE TABLE job_versions (
    job        uuid NOT NULL,
    version    integer NOT NULL,
    tenant     uuid NOT NULL,
    -- When it began, and when and by whom it was changed.
    updated_at bigint NOT NULL,
    ended_at   bigint NOT NULL,
    ended_by   text NOT NULL,
    key        text,
    doc        bytea NOT NULL,
    payload    bytea,
    calendars  boolean NOT NULL,
    PRIMARY KEY (job, version)
);
