-- Fleet: what each node does, and how it is; and runs that whoever has room takes, lane by lane.
-- Why: nodes may do only part of the work; everyone is told who schedules, who executes, and how much more each could take.
-- Locks: calendars and presences for a moment, after everything else; live against nothing but its own upkeep while an index is made.
-- Nodes of the previous version may go on: a row of theirs says that they do everything, as they do.

-- Room for the next version of every row of a page: what is due together is often in one page, and moves in one commit.
ALTER TABLE jobs SET (fillfactor = 50);

-- The clock above, read to the microsecond.
CREATE FUNCTION now_us() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE AS
$$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- How many times a job was written that another version of the calendar had aimed: one that comes while jobs follow it is
-- not lost.
ALTER TABLE calendars ADD COLUMN doubts integer NOT NULL DEFAULT 0;

-- `parts` as `Parts::code`. The rest are the last beat's vitals; clocks are compared in microseconds.
ALTER TABLE presences
    ADD COLUMN parts smallint NOT NULL DEFAULT 7,
    ADD COLUMN schedules boolean NOT NULL DEFAULT true,
    ADD COLUMN executes boolean NOT NULL DEFAULT true,
    ADD COLUMN room bigint NOT NULL DEFAULT 0,
    ADD COLUMN lag bigint NOT NULL DEFAULT 0,
    ADD COLUMN ahead bigint,
    ADD COLUMN uncertainty bigint;

-- Apart.

-- What whoever has room takes. A run that is claimed at birth never enters.
CREATE INDEX CONCURRENTLY live_lane ON live (lane, due_at, id) WHERE claim IS NULL AND NOT waiting;
