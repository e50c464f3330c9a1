-- find_tenant, create_tenant: one by its name.
SELECT {tenant} FROM tenants WHERE name = $1
