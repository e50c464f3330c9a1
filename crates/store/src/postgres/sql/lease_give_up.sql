-- lease: shards that are not wanted any more.
UPDATE leases SET holder = NULL WHERE holder = $1 AND shard <> ALL($2::smallint[])
