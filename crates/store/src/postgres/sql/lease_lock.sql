-- lease: so that only one takes them.
SELECT shard FROM leases WHERE shard = ANY($1::smallint[]) ORDER BY shard FOR UPDATE
