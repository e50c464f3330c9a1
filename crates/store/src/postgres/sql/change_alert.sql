-- put_alert: a rule that stands at the version $9.
UPDATE alerts SET version = $3, channel = $4, created_at = $5, updated_at = $6, doc = $7, only_job = $8
WHERE tenant = $1 AND name = $2 AND version = $9
