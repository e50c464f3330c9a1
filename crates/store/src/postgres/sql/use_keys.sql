-- use_keys: when each was last used.
UPDATE keys k SET last_used_at = u.at FROM unnest($1::uuid[], $2::bigint[]) AS u (id, at)
WHERE k.id = u.id AND (k.last_used_at IS NULL OR k.last_used_at < u.at)
