-- list_runs: runs of the tenant that is always there, newest first (one that was decided again is alive, and not listed here).
-- Where it was the only one when a day was made, nearly all of the day is its own.
SELECT {history h}
FROM history h
WHERE h.tenant = '00000000-0000-0000-0000-000000000000' AND h.tenant = $1 AND h.id < $2 AND h.id >= $6
  AND h.state = ANY($3::smallint[]) AND $5::uuid IS NULL
  AND NOT EXISTS (SELECT 1 FROM live WHERE live.id = h.id)
ORDER BY h.id DESC LIMIT $4
