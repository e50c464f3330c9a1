-- drop_calendar: and its count.
DELETE FROM calendar_uses WHERE tenant = ?1 AND name = ?2 AND jobs = 0
