-- firing_alerts: those that fire, in the order of their keys.
SELECT {alert_state} FROM alert_states WHERE firing = 1 AND (tenant, alert, job) > (?1, ?2, ?3)
ORDER BY tenant, alert, job LIMIT ?4
