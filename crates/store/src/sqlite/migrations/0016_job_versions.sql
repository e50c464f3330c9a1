-- Versions of jobs: what a definition was before it was changed.
-- Why: people want to see what changed, and to go back.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

CREATE TABLE job_versions (
    job        BLOB NOT NULL,
    version    INTEGER NOT NULL,
    tenant     ANY NOT NULL,
    -- When it began, and when and by whom it was changed.
    updated_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL,
    ended_by   TEXT NOT NULL,
    key        TEXT,
    doc        BLOB NOT NULL,
    payload    BLOB,
    calendars  INTEGER NOT NULL,
    PRIMARY KEY (job, version)
) STRICT;
