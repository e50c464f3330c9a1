-- list_tenants: by name.
SELECT {tenant} FROM tenants WHERE name > $1 ORDER BY name LIMIT $2
