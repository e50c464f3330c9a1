-- list_jobs: when few of the newest have the part of the key, all keys of the tenant are read from their index, which is small
-- beside the jobs, and the newest of those that fit are sorted out. Deleted jobs are not in it. (In the order of that index, and then
-- by a number: so no other index has them in order, and no plan walks all jobs instead of sorting a few.)
WITH keyed AS MATERIALIZED (
    SELECT k.id FROM defs k
    WHERE k.tenant = $1 AND k.key IS NOT NULL AND NOT k.gone AND k.id < $2 AND position($4::text IN lower(k.key)) > 0
      AND (SELECT s.state FROM jobs s WHERE s.id = k.id) = ANY($3::smallint[])
    ORDER BY k.tenant, k.key),
newest AS MATERIALIZED (
    SELECT id, row_number() OVER (ORDER BY id DESC) AS place FROM keyed ORDER BY id DESC LIMIT $5)
SELECT {job}
FROM newest n JOIN defs d ON d.id = n.id JOIN jobs j ON j.id = n.id
WHERE cardinality($6::text[]) + cardinality($7::text[]) = 0
ORDER BY n.place
