-- Time: calendars, bounded schedules, jobs that rest between runs, and the zones whose tables jobs follow.
-- Why: slots that do not run say why and by whom; a calendar or a zone that changes is found together with its jobs.
-- Locks: the file, for one transaction, before it is served. Every table it adds a column to is read once for each
-- column, days of history included, so it takes about as long as reading the file two or three times.
-- The previous version must have stopped, and cannot open the file afterwards.

-- Runs of slots, counted while `runs_max` bounds them.
ALTER TABLE jobs ADD COLUMN runs_made INTEGER NOT NULL DEFAULT 0;

-- Active jobs without a next slot: the end of a run sets it. Nearly always few.
CREATE INDEX jobs_resting ON jobs (id) WHERE next_slot IS NULL AND state = 0;

-- `zone` is the one whose rules move the job's slots; a deleted job has none. `calendars` says whether `doc` names any.
ALTER TABLE defs ADD COLUMN zone TEXT;
ALTER TABLE defs ADD COLUMN calendars INTEGER NOT NULL DEFAULT 0;
ALTER TABLE defs ADD COLUMN paused_by TEXT;

-- Only cron and calendar periods follow the clocks on the wall; UTC is not written down. What cannot be read follows
-- nothing, and is left for whoever reads it to say so.
UPDATE defs SET zone = json_extract(CAST(doc AS TEXT), '$.schedule.zone')
WHERE gone = 0 AND instr(doc, CAST('"zone"' AS BLOB))
  AND CASE WHEN json_valid(CAST(doc AS TEXT)) THEN
      json_type(CAST(doc AS TEXT), '$.schedule.zone') = 'text'
      AND (json_extract(CAST(doc AS TEXT), '$.schedule.cron') IS NOT NULL
           OR json_extract(CAST(doc AS TEXT), '$.schedule.every') GLOB 'P[^T]*')
      ELSE 0 END;

CREATE INDEX defs_zone ON defs (zone, id) WHERE zone IS NOT NULL;

-- Zones that jobs follow, and a digest of the tables that they were aimed by; 0 when nobody knows.
CREATE TABLE zones (
    name   TEXT PRIMARY KEY,
    digest INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO zones (name, digest) SELECT DISTINCT zone, 0 FROM defs WHERE zone IS NOT NULL;

-- `applied` is the version that all jobs which name it have been aimed by.
CREATE TABLE calendars (
    tenant     ANY NOT NULL,
    name       TEXT NOT NULL,
    version    INTEGER NOT NULL,
    applied    INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    doc        BLOB NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- Calendars whose jobs are still to be aimed; nearly always empty.
CREATE INDEX calendars_changed ON calendars (tenant, name) WHERE applied <> version;

-- Who names a calendar; deleted jobs name none.
CREATE TABLE calendar_jobs (
    tenant ANY NOT NULL,
    name   TEXT NOT NULL,
    job    BLOB NOT NULL,
    PRIMARY KEY (tenant, name, job)
) STRICT, WITHOUT ROWID;

-- For taking a job's calendars away.
CREATE INDEX calendar_jobs_job ON calendar_jobs (job);

-- How many they are, so that nobody has to count a million.
CREATE TABLE calendar_uses (
    tenant ANY NOT NULL,
    name   TEXT NOT NULL,
    jobs   INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- What a node says of itself.
ALTER TABLE presences ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE presences ADD COLUMN tables TEXT NOT NULL DEFAULT '';

-- For every day of history:
ALTER TABLE history_{day} ADD COLUMN note TEXT;
ALTER TABLE history_{day} ADD COLUMN actor TEXT;
