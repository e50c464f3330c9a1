-- list_jobs: jobs in rare states only, newest first, from their own index.
SELECT {job}
FROM jobs j JOIN defs d ON d.id = j.id
WHERE j.state IN ({JobState::Paused}, {JobState::Invalid}, {JobState::Deleted}) AND j.state = ANY($3::smallint[]) AND j.tenant = $1 AND j.id < $2
  AND ($4::text IS NULL OR position($4 IN lower(d.key)) > 0)
  AND cardinality($6::text[]) + cardinality($7::text[]) = 0
ORDER BY j.id DESC LIMIT $5
