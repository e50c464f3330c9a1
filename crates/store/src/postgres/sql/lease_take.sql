-- lease: shards that nobody living has change hands.
UPDATE leases l SET holder = $2, epoch = l.epoch + 1
WHERE l.shard = ANY($1::smallint[])
  AND NOT EXISTS (SELECT 1 FROM presences p WHERE p.no = l.holder AND p.ended_at IS NULL)
