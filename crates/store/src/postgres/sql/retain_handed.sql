-- retain: what is kept of attempts whose run is over.
DELETE FROM handed WHERE run IN (
    SELECT h.run FROM handed h WHERE NOT EXISTS (SELECT 1 FROM live l WHERE l.id = h.run) LIMIT $1)
