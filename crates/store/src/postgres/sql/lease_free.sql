-- lease: shards that look as if nobody living had them.
SELECT l.shard FROM leases l
WHERE l.shard = ANY($1::smallint[])
  AND NOT EXISTS (SELECT 1 FROM presences p WHERE p.no = l.holder AND p.ended_at IS NULL)
