-- list_calendars: by name.
SELECT c.name, c.version, c.updated_at, c.doc, c.applied = c.version,
       (SELECT count(*) FROM calendar_jobs u WHERE u.tenant = c.tenant AND u.name = c.name)
FROM calendars c WHERE c.tenant = $1 AND c.name > $2 ORDER BY c.name LIMIT $3
