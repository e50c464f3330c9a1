-- lease: shards that nobody living has change hands. How far they were read is known by whoever gave them up, or had them; for
-- nodes of the version before, and presences that are forgotten, by nobody.
WITH free AS MATERIALIZED (
    SELECT l.shard, coalesce(CASE WHEN l.holder IS NULL THEN l.low_water ELSE p.low_water END, 0) AS low_water
    FROM leases l LEFT JOIN presences p ON p.no = l.holder
    WHERE l.shard = ANY($1::smallint[]) AND (p.no IS NULL OR p.ended_at IS NOT NULL)),
taken AS (
    UPDATE leases l SET holder = $2, epoch = l.epoch + 1, low_water = NULL FROM free f WHERE l.shard = f.shard)
UPDATE presences p SET low_water = least(coalesce(p.low_water, 0), f.lowest), taken = p.taken + 1
FROM (SELECT min(low_water) AS lowest FROM free) f
WHERE p.no = $2 AND f.lowest IS NOT NULL
