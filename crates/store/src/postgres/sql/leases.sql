-- lease: what a presence has.
SELECT shard, epoch FROM leases WHERE holder = $1 ORDER BY shard
