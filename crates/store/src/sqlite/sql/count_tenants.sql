-- create_tenant: how many there are.
SELECT count(*) FROM tenants
