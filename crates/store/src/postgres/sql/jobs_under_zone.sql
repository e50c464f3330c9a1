-- jobs_under: jobs that follow a zone.
SELECT tenant, id FROM defs WHERE zone = $1 AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3
