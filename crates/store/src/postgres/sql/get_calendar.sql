-- get_calendars, put_calendar, drop_calendar: one calendar, and how many jobs name it.
SELECT c.name, c.version, c.updated_at, c.doc, c.applied = c.version,
       (SELECT count(*) FROM calendar_jobs u WHERE u.tenant = c.tenant AND u.name = c.name)
FROM calendars c WHERE c.tenant = $1 AND c.name = $2
