-- Runs a day: how many a tenant may have, and how many every node has inserted.
-- Why: one tenant must not take all the time that there is. Nodes count in memory and say what they have once a second, so
-- that no run costs a row more.
-- Locks: the file, for a moment, before it is served; no row is rewritten.
-- The previous version must have stopped, and cannot open the file afterwards.

-- None is the default.
ALTER TABLE tenants ADD COLUMN runs_day_max INTEGER;

-- Those that have the quota are read each second: most stores have none.
CREATE INDEX tenants_runs_day ON tenants (id) WHERE runs_day_max IS NOT NULL;

-- A counter is a process, by its first presence. What it has so far, not what was added.
CREATE TABLE run_counts (
    day     INTEGER NOT NULL,
    tenant  ANY NOT NULL,
    counter BLOB NOT NULL,
    runs    INTEGER NOT NULL,
    PRIMARY KEY (day, tenant, counter)
) STRICT, WITHOUT ROWID;
