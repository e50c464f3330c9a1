-- get_secret, put_secret: one of a tenant.
SELECT {secret} FROM secrets WHERE tenant = $1 AND name = $2
