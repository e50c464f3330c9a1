-- drop_tenant: its keys have gone before.
DELETE FROM tenants WHERE id = $1
