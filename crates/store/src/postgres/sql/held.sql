-- fire, claim: which of these leases a presence has.
SELECT l.shard
FROM leases l JOIN unnest($2::smallint[], $3::bigint[]) w(shard, epoch) ON l.shard = w.shard AND l.epoch = w.epoch
WHERE l.holder = (SELECT no FROM presences WHERE id = $1 AND ended_at IS NULL)
