-- list_jobs: jobs that are not finished, of any tenant but the one that is always there, newest first, from their own index.
SELECT {job}
FROM jobs j JOIN defs d ON d.id = j.id
WHERE j.state <> {JobState::Finished} AND j.tenant <> '00000000-0000-0000-0000-000000000000' AND j.tenant = $1 AND j.id < $2
  AND j.state = ANY($3::smallint[])
  AND ($4::text IS NULL OR position($4 IN lower(d.key)) > 0)
  AND cardinality($6::text[]) + cardinality($7::text[]) = 0
ORDER BY j.tenant DESC, j.id DESC LIMIT $5
