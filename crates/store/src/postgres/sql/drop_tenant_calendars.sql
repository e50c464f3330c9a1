-- retain: calendars of a tenant whose jobs are gone.
DELETE FROM calendars WHERE tenant = $1
