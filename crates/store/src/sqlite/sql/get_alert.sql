-- get_alert: one of a tenant, by its name.
SELECT tenant, name, version, channel, created_at, updated_at, doc FROM alerts WHERE tenant = ?1 AND name = ?2
