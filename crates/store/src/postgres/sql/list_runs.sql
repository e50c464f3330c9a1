-- list_runs: runs of any tenant but the one that is always there, newest first (one that was decided again is alive, and not
-- listed here): by an index of their own.
SELECT {history h}
FROM history h
WHERE h.tenant = $1 AND h.tenant <> '00000000-0000-0000-0000-000000000000' AND h.id < $2 AND h.id >= $6
  AND h.state = ANY($3::smallint[]) AND $5::uuid IS NULL
  AND NOT EXISTS (SELECT 1 FROM live WHERE live.id = h.id)
ORDER BY h.id DESC LIMIT $4
