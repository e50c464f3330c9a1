-- list_seals: by number.
SELECT number, from_seq, to_seq, sealed_at, gaps, late, entries, key, previous, mac
FROM audit_seals WHERE number > ?1 ORDER BY number LIMIT ?2
