-- put_calendar: how many a tenant has.
SELECT count(*) FROM calendars WHERE tenant = $1
