-- last_seal: the one that the next is chained to.
SELECT {seal}
FROM audit_seals WHERE number > 0 ORDER BY number DESC LIMIT 1
