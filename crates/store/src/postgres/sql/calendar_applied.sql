-- rule_applied: every job that names the calendar was aimed by this version.
UPDATE calendars SET applied = $3 WHERE tenant = $1 AND name = $2
