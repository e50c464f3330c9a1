-- settle: the jobs that the ends of these runs may mean something to, locked in the order of ids.
WITH mean AS MATERIALIZED (
    SELECT l.job FROM live l WHERE l.id = ANY($1::uuid[]) AND l.exclusive)
SELECT j.id FROM mean JOIN jobs j ON j.id = ANY(ARRAY[mean.job])
ORDER BY coalesce(j.id, j.id) FOR NO KEY UPDATE OF j
