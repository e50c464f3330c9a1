-- put_alert: a new rule.
INSERT INTO alerts ({alert}, only_job)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT DO NOTHING
