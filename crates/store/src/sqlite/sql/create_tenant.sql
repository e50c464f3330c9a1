-- create_tenant: its name is free.
INSERT INTO tenants (id, name, note, created_at, jobs_max, payload_bytes_max, history_days_max, runs_day_max)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
