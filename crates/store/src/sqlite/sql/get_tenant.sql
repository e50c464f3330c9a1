-- get_tenant, create_key: one by its id.
SELECT {tenant} FROM tenants WHERE id = ?1
