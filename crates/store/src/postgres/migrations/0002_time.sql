-- Time: calendars, bounded schedules, jobs that rest between runs, and the zones whose tables jobs follow.
-- Why: slots that do not run say why and by whom; a calendar or a zone that changes is found together with its jobs.
-- Locks: the tables it adds columns to, for a moment; no row is rewritten.
-- Nodes of the previous version must have stopped: they would not know what a job that rests is.

-- Runs of slots, counted while `runs_max` bounds them.
ALTER TABLE jobs ADD COLUMN runs_made bigint NOT NULL DEFAULT 0;

-- Active jobs without a next slot: the end of a run sets it. Nearly always few.
CREATE INDEX jobs_resting ON jobs (id) WHERE state = 0 AND next_slot IS NULL;

-- `zone` is the one whose rules move the job's slots; a deleted job has none. `calendars` says whether `doc` names any.
ALTER TABLE defs ADD COLUMN zone text COLLATE "C";
ALTER TABLE defs ADD COLUMN calendars boolean NOT NULL DEFAULT false;
ALTER TABLE defs ADD COLUMN paused_by text;

CREATE INDEX defs_zone ON defs (zone, id) WHERE zone IS NOT NULL;

-- Zones that jobs follow, and a digest of the tables that they were aimed by; 0 when nobody knows.
CREATE TABLE zones (
    name   text COLLATE "C" PRIMARY KEY,
    digest bigint NOT NULL
);

-- `applied` is the version that all jobs which name it have been aimed by.
CREATE TABLE calendars (
    tenant     uuid NOT NULL,
    name       text COLLATE "C" NOT NULL,
    version    integer NOT NULL,
    applied    integer NOT NULL,
    updated_at bigint NOT NULL,
    doc        bytea NOT NULL,
    PRIMARY KEY (tenant, name)
);

-- Calendars whose jobs are still to be aimed; nearly always empty.
CREATE INDEX calendars_changed ON calendars (tenant, name) WHERE applied <> version;

-- Who names a calendar; deleted jobs name none.
CREATE TABLE calendar_jobs (
    tenant uuid NOT NULL,
    name   text COLLATE "C" NOT NULL,
    job    uuid NOT NULL,
    PRIMARY KEY (tenant, name, job)
);

-- For taking a job's calendars away.
CREATE INDEX calendar_jobs_job ON calendar_jobs (job);

-- What a node says of itself.
ALTER TABLE presences ADD COLUMN version text NOT NULL DEFAULT '';
ALTER TABLE presences ADD COLUMN tables text NOT NULL DEFAULT '';

-- What stands behind a skipped entry, and who decided it.
ALTER TABLE history ADD COLUMN note text;
ALTER TABLE history ADD COLUMN actor text;
