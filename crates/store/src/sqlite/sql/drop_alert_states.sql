-- drop_alert: the alerts of a rule.
DELETE FROM alert_states WHERE tenant = ?1 AND alert = ?2
