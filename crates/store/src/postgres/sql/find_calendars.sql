-- whatever reads jobs: the calendars that they name. How many others name them is not counted.
SELECT c.name, c.version, c.updated_at, c.doc, c.applied = c.version, 0::bigint, c.tenant
FROM unnest($1::uuid[], $2::text[]) n(tenant, name) JOIN calendars c ON c.tenant = n.tenant AND c.name = n.name
