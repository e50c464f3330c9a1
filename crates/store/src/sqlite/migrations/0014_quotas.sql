-- Quotas: how much a tenant may have, and how much it has.
-- Why: one tenant must not take what all of them share. What it has is counted with every write, so that nobody has to count
-- its jobs to know.
-- Locks: the file, before it is served, while the jobs that are there are counted: about a second for a million.
-- The previous version must have stopped, and cannot open the file afterwards.

-- None is the default.
ALTER TABLE tenants ADD COLUMN jobs_max INTEGER;
ALTER TABLE tenants ADD COLUMN payload_bytes_max INTEGER;
ALTER TABLE tenants ADD COLUMN history_days_max INTEGER;

-- What lists read of every tenant but the one that is always there: most stores have no other, and pay nothing for it.
CREATE INDEX defs_tenant ON defs (tenant, id) WHERE tenant <> 0;

CREATE TABLE tenant_use (
    tenant        ANY PRIMARY KEY,
    jobs          INTEGER NOT NULL,
    payload_bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO tenant_use (tenant, jobs, payload_bytes)
SELECT tenant, count(*), coalesce(sum(length(payload)), 0) FROM defs WHERE NOT gone GROUP BY tenant;
