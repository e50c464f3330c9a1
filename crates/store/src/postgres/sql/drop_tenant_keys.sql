-- drop_tenant: none of them is valid.
DELETE FROM keys WHERE tenant = $1
