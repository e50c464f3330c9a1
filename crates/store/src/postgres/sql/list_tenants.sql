-- list_tenants: by name.
SELECT id, name, note, created_at, jobs_max, payload_bytes_max, history_days_max, runs_day_max, deleting_at FROM tenants WHERE name > $1 ORDER BY name LIMIT $2
