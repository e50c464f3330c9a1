-- Fleet: what each node does, and how it is; and runs that whoever has room takes, lane by lane.
-- Why: nodes may do only part of the work; everyone is told who schedules, who executes, and how much more each could take.
-- Locks: presences for a moment; live against writes while an index of what nobody holds is made, which is little.
-- Nodes of the previous version may go on: a row of theirs says that they do everything, as they do.

-- As `Parts::code`.
ALTER TABLE presences ADD COLUMN parts smallint NOT NULL DEFAULT 7;

-- The last beat's vitals. Clocks are compared in microseconds.
ALTER TABLE presences ADD COLUMN schedules boolean NOT NULL DEFAULT true;
ALTER TABLE presences ADD COLUMN executes boolean NOT NULL DEFAULT true;
ALTER TABLE presences ADD COLUMN room bigint NOT NULL DEFAULT 0;
ALTER TABLE presences ADD COLUMN lag bigint NOT NULL DEFAULT 0;
ALTER TABLE presences ADD COLUMN ahead bigint;
ALTER TABLE presences ADD COLUMN uncertainty bigint;

-- The clock above, read to the microsecond.
CREATE FUNCTION now_us() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE AS
$$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint $$;

-- What whoever has room takes. A run that is claimed at birth never enters.
CREATE INDEX live_lane ON live (lane, due_at, id) WHERE claim IS NULL AND NOT waiting;

-- Room for the next version of every row of a page: what is due together is often in one page, and moves in one commit.
ALTER TABLE jobs SET (fillfactor = 50);
