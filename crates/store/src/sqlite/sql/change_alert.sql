-- put_alert: a rule that stands at the version ?9.
UPDATE alerts SET version = ?3, only_job = ?4, channel = ?5, created_at = ?6, updated_at = ?7, doc = ?8
WHERE tenant = ?1 AND name = ?2 AND version = ?9
