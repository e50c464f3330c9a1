-- rule_applied: every job that follows the zone was scheduled by these tables, there is no doubt since it was found, and no
-- node with others lives.
INSERT INTO zones (name, digest)
SELECT $1, $2::bigint WHERE NOT EXISTS (SELECT FROM presences WHERE ended_at IS NULL AND tables <> $4)
ON CONFLICT (name) DO UPDATE SET digest = excluded.digest WHERE zones.digest = $3
