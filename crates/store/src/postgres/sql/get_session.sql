-- get_session.
SELECT digest, user_id, key_id, tenant, created_at, used_at FROM sessions WHERE digest = $1
