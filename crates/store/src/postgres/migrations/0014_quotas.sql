-- Quotas: how much a tenant may have, and how much it has.
-- Why: one tenant must not take what all of them share. What it has is counted with every write, so that nobody has to count
-- its jobs to know.
-- Locks: defs against writers, while the jobs that are there are counted: about a second for a million.
-- Nodes of the previous version may go on, but not for long: they mind no quota, and what they create and delete is not counted.

-- None is the default.
ALTER TABLE tenants ADD COLUMN jobs_max bigint;
ALTER TABLE tenants ADD COLUMN payload_bytes_max bigint;
ALTER TABLE tenants ADD COLUMN history_days_max bigint;

-- Several rows for each tenant, so that those who write for it do not wait for each other: their sum is what counts. One of
-- them alone may be below zero.
CREATE TABLE tenant_use (
    tenant        uuid NOT NULL,
    part          smallint NOT NULL,
    jobs          bigint NOT NULL,
    payload_bytes bigint NOT NULL,
    PRIMARY KEY (tenant, part)
) WITH (fillfactor = 50);

LOCK TABLE defs IN SHARE MODE;
INSERT INTO tenant_use (tenant, part, jobs, payload_bytes)
SELECT tenant, 0, count(*), coalesce(sum(octet_length(payload)), 0) FROM defs WHERE NOT gone GROUP BY tenant;
