-- drop_tenant: what was counted of it.
DELETE FROM tenant_use WHERE tenant = $1
