-- put_alert: a new rule.
INSERT INTO alerts (tenant, name, version, only_job, channel, created_at, updated_at, doc)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT DO NOTHING
