-- retain: jobs that are over, of which nothing lives; locked, in the order of ids. Deleted ones first.
SELECT j.id FROM jobs j
WHERE j.id = ANY(ARRAY(
    (SELECT d.id FROM jobs d WHERE d.state = 4 AND d.state IN (1, 3, 4)
        AND NOT EXISTS (SELECT 1 FROM live WHERE live.job = d.id) ORDER BY d.id LIMIT $2)
    UNION ALL
    (SELECT f.id FROM jobs f WHERE f.state = 2 AND f.state_at <= $1
        AND NOT EXISTS (SELECT 1 FROM live WHERE live.job = f.id) ORDER BY f.state_at, f.id LIMIT $2)
    LIMIT $2))
  AND (j.state = 4 OR j.state = 2 AND j.state_at <= $1)
ORDER BY coalesce(j.id, j.id) FOR UPDATE
