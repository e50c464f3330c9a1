-- list_alerts: a tenant's, by name.
SELECT tenant, name, version, channel, created_at, updated_at, doc FROM alerts WHERE tenant = ?1 AND name > ?2 ORDER BY name LIMIT ?3
