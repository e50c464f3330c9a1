-- Tenants' runs: indexes of history that lead with the tenant.
-- Why: a tenant with few runs was listed by a walk through everybody's history, and its dead runs by one through everybody's
-- dead runs.
-- Locks: the file, before it is served, while each day is read once: about a second for a million runs.
-- The previous version must have stopped, and cannot open the file afterwards.

-- For every day of history:
DROP INDEX IF EXISTS history_{day}_rare;
CREATE INDEX history_{day}_rare ON history_{day} (tenant, state) WHERE state <> 3;
CREATE INDEX history_{day}_tenant ON history_{day} (tenant) WHERE tenant <> 0;
