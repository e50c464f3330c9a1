-- settle: the jobs that the ends of these runs may mean something to, locked in the order of ids.
SELECT j.id FROM jobs j
WHERE j.id IN (SELECT l.job FROM live l WHERE l.id = ANY($1::uuid[]) AND l.exclusive)
ORDER BY j.id FOR NO KEY UPDATE
