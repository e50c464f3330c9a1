-- put_calendar: a new one, which no job can have named, or another version.
INSERT INTO calendars (tenant, name, version, applied, updated_at, doc) VALUES (?1, ?2, ?3, ?3, ?4, ?5)
ON CONFLICT (tenant, name) DO UPDATE SET version = excluded.version, updated_at = excluded.updated_at,
                                         doc = excluded.doc
