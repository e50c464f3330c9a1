-- get_key, revoke_key: one of a tenant.
SELECT {key} FROM keys WHERE id = $2 AND tenant = $1
