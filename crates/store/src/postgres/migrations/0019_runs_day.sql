-- Runs a day: how many a tenant may have, and how many every node has inserted.
-- Why: one tenant must not take all the time that there is. Nodes count in memory and say what they have once a second, so
-- that no run costs a row more.
-- Locks: tenants, for a moment; no row is rewritten.
-- Nodes of the previous version may go on: they count nothing, and a tenant gets this quota when the last of them has gone.

-- Every counter has rows of its own: nobody waits for another. A counter is a process, by its first presence; its row says
-- what it has so far, not what was added. Updates find room beside the row.
CREATE TABLE run_counts (
    day     bigint NOT NULL,
    tenant  uuid NOT NULL,
    counter uuid NOT NULL,
    runs    bigint NOT NULL,
    PRIMARY KEY (day, tenant, counter)
) WITH (fillfactor = 50);

-- None is the default.
ALTER TABLE tenants ADD COLUMN runs_day_max bigint;

-- Those that have the quota are read each second: most stores have none.
CREATE INDEX tenants_runs_day ON tenants (id) WHERE runs_day_max IS NOT NULL;
