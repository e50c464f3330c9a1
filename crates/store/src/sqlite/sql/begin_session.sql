-- begin_session.
INSERT INTO sessions (digest, user_id, key_id, tenant, created_at, used_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
