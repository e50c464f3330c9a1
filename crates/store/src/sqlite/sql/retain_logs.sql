-- retain: logs of runs whose history is over.
DELETE FROM run_logs WHERE run IN (
    SELECT g.run FROM run_logs g WHERE g.run < ?2 AND NOT EXISTS (SELECT 1 FROM live l WHERE l.id = g.run) LIMIT ?1)
