-- list_calendars: by name.
SELECT c.name, c.version, c.updated_at, c.doc, c.applied = c.version,
       coalesce((SELECT u.jobs FROM calendar_uses u WHERE u.tenant = c.tenant AND u.name = c.name), 0)
FROM calendars c WHERE c.tenant = ?1 AND c.name > ?2 ORDER BY c.name LIMIT ?3
