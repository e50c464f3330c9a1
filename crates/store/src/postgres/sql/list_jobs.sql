-- list_jobs: newest first; $4 is a part of the key or nothing.
SELECT {job}
FROM defs d JOIN jobs j ON j.id = d.id
WHERE d.tenant = $1 AND d.id < $2 AND j.state = ANY($3::smallint[])
  AND ($4::text IS NULL OR position($4 IN lower(d.key)) > 0)
  AND cardinality($6::text[]) + cardinality($7::text[]) = 0
ORDER BY d.id DESC LIMIT $5
