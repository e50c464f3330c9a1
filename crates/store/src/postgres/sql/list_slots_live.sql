-- list_slots: live runs of a job's slots, oldest first.
SELECT {live}, p.id
FROM live l LEFT JOIN presences p ON p.no = l.claim
WHERE l.job = $1 AND l.tenant = $2 AND l.id >= $3 AND l.id < $4 AND l.kind = {RunKind::Slot} ORDER BY l.id LIMIT $5
