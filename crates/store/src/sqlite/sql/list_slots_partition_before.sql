-- list_slots: the last entry about a job's slots before a moment, and how far it reaches.
SELECT id, stretch_last FROM history_{day} WHERE job = ?1 AND id < ?3 AND tenant = ?2 AND kind = 0 /* RunKind::Slot */
ORDER BY id DESC LIMIT 1
