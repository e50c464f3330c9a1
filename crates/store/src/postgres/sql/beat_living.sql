-- beat: everyone who lives, with the shards that each has, which those of the version before have not written down; and the time
-- once more, when the beat is written.
SELECT p.id, p.node, p.version, p.tables, p.parts, p.schedules, p.executes, p.room, p.lag, p.ahead, p.uncertainty,
       p.joined_at, p.beaten_at, greatest(t.up + $3::bigint - p.expires_at, 0), 
       coalesce(p.shards, (SELECT count(*) FROM leases l WHERE l.holder = p.no)), coalesce($2::bigint, now_us()),
       p.level, p.kinds
FROM (SELECT coalesce($1::bigint, now_ms()) AS up) t
CROSS JOIN presences p
WHERE p.ended_at IS NULL ORDER BY p.no
