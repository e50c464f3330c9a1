-- retain: a presence that has ended and holds nothing.
DELETE FROM presences WHERE no = ?1 AND ended_at IS NOT NULL
