-- create_user, edit_user: what the user may do in one tenant.
INSERT INTO members (user_id, tenant, role) VALUES (?1, ?2, ?3)
