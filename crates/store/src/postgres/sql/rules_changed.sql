-- rules_changed: calendars that not all of their jobs have been scheduled by.
SELECT tenant, name, version, doubts FROM calendars WHERE applied <> version ORDER BY tenant, name
