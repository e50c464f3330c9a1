-- join: a new presence.
INSERT INTO presences (id, node, version, tables, joined_at, seen_at, beaten_at, unbroken_at, expires_at)
SELECT $1, $2, $3, $4, t.now, t.now, t.up, t.up, t.up + $7::bigint
FROM (SELECT coalesce($5::bigint, now_ms()) AS now, coalesce($6::bigint, now_ms()) AS up) t
RETURNING joined_at
