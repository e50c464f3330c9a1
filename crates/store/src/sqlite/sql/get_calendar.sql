-- get_calendars, put_calendar, drop_calendar, and whatever reads a job: one calendar, and how many jobs name it.
SELECT c.name, c.version, c.updated_at, c.doc, c.applied = c.version,
       coalesce((SELECT u.jobs FROM calendar_uses u WHERE u.tenant = c.tenant AND u.name = c.name), 0)
FROM calendars c WHERE c.tenant = ?1 AND c.name = ?2
