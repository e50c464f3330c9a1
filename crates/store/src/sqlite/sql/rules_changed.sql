-- rules_changed: calendars that not all of their jobs have been scheduled by.
SELECT tenant, name, version, doubts FROM calendars INDEXED BY calendars_changed WHERE applied <> version
ORDER BY tenant, name
