-- fire: whether any run of a job lives.
SELECT 1 FROM live WHERE job = ?1 LIMIT 1
