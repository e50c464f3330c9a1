-- list_jobs: jobs with labels, newest first: those with the first label that have all the others.
SELECT {job}
FROM labels f JOIN defs d ON d.id = f.job JOIN jobs j ON j.id = d.id
WHERE f.tenant = $1 AND f.name = ($6::text[])[1] AND f.value = ($7::text[])[1] AND f.job < $2
  AND j.state = ANY($3::smallint[])
  AND ($4::text IS NULL OR position($4 IN lower(d.key)) > 0)
  AND NOT EXISTS (
      SELECT 1 FROM unnest($6::text[], $7::text[]) w(name, value)
      WHERE NOT EXISTS (SELECT 1 FROM labels l WHERE l.tenant = $1 AND l.name = w.name AND l.value = w.value
                                                   AND l.job = d.id))
ORDER BY f.job DESC LIMIT $5
