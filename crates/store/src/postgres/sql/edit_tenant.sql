-- edit_tenant: what is said of it.
UPDATE tenants SET note = $2, jobs_max = $3, payload_bytes_max = $4, history_days_max = $5, runs_day_max = $6 WHERE id = $1
