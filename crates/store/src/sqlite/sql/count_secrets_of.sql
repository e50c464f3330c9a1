-- put_secret: how many a tenant has.
SELECT count(*) FROM secrets WHERE tenant = ?1
