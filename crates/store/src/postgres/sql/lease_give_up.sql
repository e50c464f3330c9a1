-- lease: shards that are not wanted any more.
UPDATE leases l SET holder = NULL, low_water = p.low_water
FROM presences p WHERE p.no = $1 AND l.holder = $1 AND l.shard <> ALL($2::smallint[])
