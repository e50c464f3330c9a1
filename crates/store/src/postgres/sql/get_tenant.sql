-- get_tenant, create_key: one by its id.
SELECT id, name, note, created_at, jobs_max, payload_bytes_max, history_days_max, runs_day_max, deleting_at FROM tenants WHERE id = $1
