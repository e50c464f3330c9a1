-- beat: everyone who lives.
SELECT id, node, version, tables FROM presences
WHERE ended_at IS NULL AND coalesce($1::bigint, now_ms()) <= expires_at ORDER BY no
