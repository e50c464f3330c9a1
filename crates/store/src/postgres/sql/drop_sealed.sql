-- drop_sealed: entries of a segment, between its gaps.
DELETE FROM audit a USING unnest($1::bigint[], $2::bigint[]) g(first, last)
WHERE a.seq BETWEEN g.first AND g.last
