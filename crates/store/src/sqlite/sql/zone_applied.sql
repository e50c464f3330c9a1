-- rule_applied: every job that follows the zone was scheduled by these tables, and there is no doubt since it was found.
INSERT INTO zones (name, digest) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET digest = excluded.digest WHERE digest = ?3
