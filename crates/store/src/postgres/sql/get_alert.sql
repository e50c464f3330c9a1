-- get_alert: one of a tenant, by its name.
SELECT {alert} FROM alerts WHERE tenant = $1 AND name = $2
