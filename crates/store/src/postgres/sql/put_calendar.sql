-- put_calendar: a new one, which no job can have named.
INSERT INTO calendars (tenant, name, version, applied, updated_at, doc) VALUES ($1, $2, $3, $3, $4, $5)
