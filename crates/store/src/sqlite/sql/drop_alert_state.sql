-- move_alerts: an alert that is over.
DELETE FROM alert_states WHERE tenant = ?1 AND alert = ?2 AND job = ?3
