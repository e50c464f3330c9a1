-- leave, fence: a presence ends, once, and the low-water mark of its shards is written.
UPDATE presences SET ended_at = ?2, low_water = ?3 WHERE no = ?1 AND ended_at IS NULL
