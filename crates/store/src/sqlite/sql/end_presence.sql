-- leave, fence: a presence ends, once.
UPDATE presences SET ended_at = ?2 WHERE no = ?1 AND ended_at IS NULL
