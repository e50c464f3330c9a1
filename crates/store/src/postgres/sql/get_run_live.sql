-- get_run, and every method that answers runs: live runs by id, their claims as the presences' own names. A payload of more
-- than $2 bytes is left out, and its size is said instead.
SELECT {live $2}, p.id
FROM live l LEFT JOIN presences p ON p.no = l.claim
WHERE l.id = ANY($1::uuid[])
ORDER BY coalesce(l.id, l.id)
