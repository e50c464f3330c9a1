-- put_alert: how many a tenant has.
SELECT count(*) FROM alerts WHERE tenant = $1
