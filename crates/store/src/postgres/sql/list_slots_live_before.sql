-- list_slots: the last live run of a job's slots before a moment.
SELECT id FROM live WHERE job = $1 AND tenant = $2 AND id < $3 AND kind = {RunKind::Slot} ORDER BY id DESC LIMIT 1
