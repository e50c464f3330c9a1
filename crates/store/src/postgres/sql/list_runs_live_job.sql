-- list_runs: live runs of one job, newest first.
SELECT {live}, p.id
FROM live l LEFT JOIN presences p ON p.no = l.claim
WHERE l.job = $5 AND l.tenant = $1 AND l.id < $2 AND l.id >= $6 AND l.state = ANY($3::smallint[])
  AND ($7::smallint[] IS NULL OR l.waiting AND coalesce(l.wait_reason, {WaitReason::Turn}) = ANY($7))
ORDER BY l.id DESC LIMIT $4
