-- Tenants' runs: indexes of history that lead with the tenant.
-- Why: a tenant with few runs was listed by a walk through everybody's history, and its dead runs by one through everybody's
-- dead runs.
-- Locks: history and its days, for a moment, while the index of rare ends goes; nothing while the new ones are made, day by
-- day. Until then lists by state walk history from the newest run on.
-- Nodes of the previous version may go on: their lists by state find the new index, their other lists walk as before.

DROP INDEX history_rare;

-- Most runs succeed, so the other ends have an index of their own and a tenant's dead ones are found at once.
CREATE INDEX history_ends ON ONLY history (tenant, state, id) WHERE state <> 3;

-- Of every tenant but the one that is always there: most stores have no other, and pay nothing for it. Days that are made
-- once there are others have one for that tenant too (see index_default.sql).
CREATE INDEX history_tenant ON ONLY history (tenant, id) WHERE tenant <> '00000000-0000-0000-0000-000000000000';

-- Apart.

CREATE INDEX CONCURRENTLY history_{day}_ends ON history_{day} (tenant, state, id) WHERE state <> 3;

CREATE INDEX CONCURRENTLY history_{day}_tenant ON history_{day} (tenant, id) WHERE tenant <> '00000000-0000-0000-0000-000000000000';
