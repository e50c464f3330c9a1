-- list_alerts: a tenant's, by name.
SELECT {alert} FROM alerts WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3
