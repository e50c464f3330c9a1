-- change_job, cancel_run, withdraw, start_run, fire: the same, and nobody claims or ends them meanwhile.
SELECT {live}, p.id
FROM live l LEFT JOIN presences p ON p.no = l.claim
WHERE l.job = ANY($1::uuid[])
ORDER BY coalesce(l.id, l.id)
FOR UPDATE OF l
