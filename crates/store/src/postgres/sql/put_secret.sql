-- put_secret: the version that stands was compared before.
INSERT INTO secrets ({secret}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (tenant, name) DO UPDATE SET version = excluded.version, hosts = excluded.hosts, note = excluded.note,
    updated_at = excluded.updated_at, master_key = excluded.master_key, wrapped = excluded.wrapped, value = excluded.value
