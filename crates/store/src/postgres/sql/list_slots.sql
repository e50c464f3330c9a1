-- list_slots: what came of a job's slots, oldest first (one that was decided again is alive, and not listed here).
SELECT {history h}
FROM history h
WHERE h.job = $1 AND h.tenant = $2 AND h.id >= $3 AND h.id < $4 AND h.kind = {RunKind::Slot}
  AND NOT EXISTS (SELECT 1 FROM live WHERE live.id = h.id)
ORDER BY h.id LIMIT $5
