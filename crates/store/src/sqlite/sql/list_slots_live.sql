-- list_slots: live runs of a job's slots, oldest first.
SELECT id FROM live WHERE job = ?1 AND id >= ?3 AND id < ?4 AND tenant = ?2 AND kind = 0 /* RunKind::Slot */ ORDER BY id LIMIT ?5
