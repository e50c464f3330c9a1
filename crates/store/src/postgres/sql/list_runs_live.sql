-- list_runs: live runs, newest first.
SELECT {live}, p.id
FROM live l LEFT JOIN presences p ON p.no = l.claim
WHERE l.tenant = $1 AND l.id < $2 AND l.state = ANY($3::smallint[]) AND $5::uuid IS NULL ORDER BY l.id DESC LIMIT $4
