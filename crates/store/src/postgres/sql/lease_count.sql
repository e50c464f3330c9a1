-- lease: how many a presence has now, for every beat to read instead of all leases.
UPDATE presences p SET shards = c.count
FROM (SELECT count(*)::smallint AS count FROM leases WHERE holder = $1) c
WHERE p.no = $1 AND p.shards IS DISTINCT FROM c.count
