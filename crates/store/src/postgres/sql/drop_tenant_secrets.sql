-- drop_tenant: what is left of its secrets.
DELETE FROM secrets WHERE tenant = $1
