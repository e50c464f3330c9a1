-- list_slots: the last entry about a job's slots before a moment.
SELECT {history h}
FROM history h
WHERE h.job = $1 AND h.tenant = $2 AND h.id < $3 AND h.kind = {RunKind::Slot} ORDER BY h.id DESC LIMIT 1
