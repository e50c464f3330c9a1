-- find_tenant, create_tenant: one by its name.
SELECT id, name, note, created_at FROM tenants WHERE name = $1
