-- create_key: how many a tenant has.
SELECT count(*) FROM keys WHERE tenant = $1
