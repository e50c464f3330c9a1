-- rule_applied: every job that names the calendar was scheduled by this version, unless there is another doubt.
UPDATE calendars SET applied = ?3 WHERE tenant = ?1 AND name = ?2 AND doubts = ?4
