-- join: a new presence, of a node that knows the store's level, which is locked. Until its first beat it says
-- nothing of itself that anyone could rely on.
INSERT INTO presences (id, node, version, tables, parts, schedules, executes, joined_at, seen_at, beaten_at, unbroken_at,
                       expires_at, level, kinds, shards, low_water)
SELECT $1, $2, $3, $4, $5, false, false, t.now, t.now, t.up, t.up, t.up + $8::bigint, $9, $10, 0, $11
FROM (SELECT coalesce($6::bigint, now_ms()) AS now, coalesce($7::bigint, now_ms()) AS up) t
CROSS JOIN level l
WHERE l.level <= $9
RETURNING joined_at
