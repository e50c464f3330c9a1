-- retain: checkpoints of runs that are over.
DELETE FROM checkpoints WHERE run IN (
    SELECT c.run FROM checkpoints c WHERE NOT EXISTS (SELECT 1 FROM live l WHERE l.id = c.run) LIMIT $1)
