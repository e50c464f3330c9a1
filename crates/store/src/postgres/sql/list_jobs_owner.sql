-- list_jobs: jobs of an owner, newest first, with all of the labels. The owner is a bound of the index and not compared for equality:
-- then no other index has them in this order, however many belong to one.
SELECT {job}
FROM defs d JOIN jobs j ON j.id = d.id
WHERE d.tenant = $1 AND d.owner >= $8 AND (d.owner, d.id) < ($8, $2) AND j.state = ANY($3::smallint[])
  AND ($4::text IS NULL OR position($4 IN lower(d.key)) > 0)
  AND NOT EXISTS (
      SELECT 1 FROM unnest($6::text[], $7::text[]) w(name, value)
      WHERE NOT EXISTS (SELECT 1 FROM labels l WHERE l.tenant = $1 AND l.name = w.name AND l.value = w.value
                                                   AND l.job = d.id))
ORDER BY d.tenant DESC, d.owner DESC, d.id DESC LIMIT $5
