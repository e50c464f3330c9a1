-- last_seal: the one that the next is chained to.
SELECT number, from_seq, to_seq, sealed_at, gaps, late, entries, key, previous, mac
FROM audit_seals WHERE number > 0 ORDER BY number DESC LIMIT 1
