-- move_alerts: the step of one.
SELECT step FROM alert_states WHERE tenant = ?1 AND alert = ?2 AND job = ?3
