-- drop_alert: a rule that stands at the version $3.
DELETE FROM alerts WHERE tenant = $1 AND name = $2 AND version = $3
