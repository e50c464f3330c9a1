-- drop_calendar: one that no job names.
DELETE FROM calendars WHERE tenant = $1 AND name = $2
