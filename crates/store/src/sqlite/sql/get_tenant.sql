-- get_tenant, create_key: one by its id.
SELECT id, name, note, created_at FROM tenants WHERE id = ?1
