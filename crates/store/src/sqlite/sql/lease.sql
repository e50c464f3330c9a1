-- lease: a shard changes hands, or is given up.
INSERT INTO leases (shard, holder, epoch) VALUES (?1, ?2, ?3)
ON CONFLICT (shard) DO UPDATE SET holder = excluded.holder, epoch = excluded.epoch
