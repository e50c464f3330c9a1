-- jobs_under: calendars that are meant in a zone.
SELECT tenant, name FROM calendars INDEXED BY calendars_zone WHERE zone = ?1
