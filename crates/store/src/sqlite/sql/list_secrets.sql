-- list_secrets: by name.
SELECT tenant, name, version, hosts, note, created_at, updated_at, master_key, wrapped, value FROM secrets WHERE tenant = ?1 AND name > ?2 ORDER BY name LIMIT ?3
