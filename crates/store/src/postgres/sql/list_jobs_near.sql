-- list_jobs: of so many of the newest jobs of a tenant, those whose key has the part: nearly always they fill the page.
SELECT {job}
FROM (SELECT id FROM defs WHERE tenant = $1 AND id < $2 ORDER BY tenant DESC, id DESC LIMIT $8::bigint) n
JOIN defs d ON d.id = n.id JOIN jobs j ON j.id = n.id
WHERE j.state = ANY($3::smallint[]) AND position($4::text IN lower(d.key)) > 0
  AND cardinality($6::text[]) + cardinality($7::text[]) = 0
ORDER BY n.id DESC LIMIT $5
