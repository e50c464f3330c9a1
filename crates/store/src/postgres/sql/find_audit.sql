-- find_audit: those of some gaps.
SELECT a.seq, {audit a}
FROM unnest($1::bigint[], $2::bigint[]) g(first, last)
JOIN audit a ON a.seq BETWEEN g.first AND g.last
ORDER BY a.seq LIMIT $3
