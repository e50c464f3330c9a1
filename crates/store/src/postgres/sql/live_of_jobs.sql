-- fire, settle: all live runs of jobs whose rows are locked.
SELECT {live}, p.id
FROM live l LEFT JOIN presences p ON p.no = l.claim
WHERE l.job = ANY($1::uuid[])
ORDER BY coalesce(l.id, l.id)
