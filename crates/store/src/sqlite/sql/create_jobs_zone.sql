-- create_jobs, change_job, put_calendar: a zone that is followed for the first time, by the tables that compute slots.
INSERT OR IGNORE INTO zones (name, digest) VALUES (?1, ?2)
