-- retain: tenants that are being deleted.
SELECT id, name, note, created_at, jobs_max, payload_bytes_max, history_days_max, runs_day_max, deleting_at FROM tenants
WHERE deleting_at IS NOT NULL ORDER BY deleting_at LIMIT ?1
