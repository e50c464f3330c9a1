-- get_secret, put_secret: one of a tenant.
SELECT tenant, name, version, hosts, note, created_at, updated_at, master_key, wrapped, value FROM secrets WHERE tenant = ?1 AND name = ?2
