-- put_calendar, drop_calendar: a calendar, until its change is written.
SELECT 1 FROM calendars WHERE tenant = $1 AND name = $2 FOR UPDATE
