-- lease: a shard changes hands, or is given up; then its low-water mark stays with it.
INSERT INTO leases (shard, holder, epoch, low_water) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (shard) DO UPDATE SET holder = excluded.holder, epoch = excluded.epoch, low_water = excluded.low_water
