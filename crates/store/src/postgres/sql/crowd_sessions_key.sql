-- begin_session: all but the newest of one key.
DELETE FROM sessions WHERE digest IN (
    SELECT digest FROM sessions WHERE key_id = $1 ORDER BY used_at DESC, digest DESC LIMIT 1000 OFFSET $2)
