-- put_calendar: another version.
UPDATE calendars SET version = $3, updated_at = $4, doc = $5 WHERE tenant = $1 AND name = $2
