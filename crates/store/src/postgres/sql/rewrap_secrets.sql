-- rewrap_secrets: those that nobody changed meanwhile.
UPDATE secrets s SET master_key = r.master_key, wrapped = r.wrapped
FROM unnest($1::uuid[], $2::text[], $3::integer[], $4::text[], $5::bytea[]) AS r (tenant, name, version, master_key, wrapped)
WHERE s.tenant = r.tenant AND s.name = r.name AND s.version = r.version
