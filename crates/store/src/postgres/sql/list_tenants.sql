-- list_tenants: by name.
SELECT id, name, note, created_at FROM tenants WHERE name > $1 ORDER BY name LIMIT $2
