-- end_session, begin_session.
DELETE FROM sessions WHERE digest = $1
RETURNING digest, user_id, key_id, tenant, created_at, used_at
