-- list_runs: runs of one job, newest first (one that was decided again is alive, and not listed here).
SELECT {history h}
FROM history h
WHERE h.job = $5 AND h.tenant = $1 AND h.id < $2 AND h.id >= $6 AND h.state = ANY($3::smallint[])
  AND NOT EXISTS (SELECT 1 FROM live WHERE live.id = h.id)
ORDER BY h.id DESC LIMIT $4
