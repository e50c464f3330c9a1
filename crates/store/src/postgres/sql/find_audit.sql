-- find_audit: those of some gaps.
SELECT a.seq, a.at, a.tenant, a.actor, a.key, a.address, a.request, a.action, a.subject, a.before, a.after
FROM unnest($1::bigint[], $2::bigint[]) g(first, last)
JOIN audit a ON a.seq BETWEEN g.first AND g.last
ORDER BY a.seq LIMIT $3
