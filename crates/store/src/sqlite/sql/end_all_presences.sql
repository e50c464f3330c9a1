-- open: nobody who wrote before lives, since we have the lock.
UPDATE presences SET ended_at = ?1 WHERE ended_at IS NULL
