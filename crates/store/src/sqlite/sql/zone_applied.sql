-- rule_applied: every job that follows the zone was scheduled by these tables.
INSERT INTO zones (name, digest) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET digest = excluded.digest
