-- drop_secret: one of a tenant.
DELETE FROM secrets WHERE tenant = $1 AND name = $2
