-- create_first_key, revoke_key: of all tenants; there are few, and they are read seldom.
SELECT {key} FROM keys WHERE role = $1
