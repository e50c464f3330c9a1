-- alerts_of: the alerts of a rule, by job.
SELECT {alert_state} FROM alert_states WHERE tenant = ?1 AND alert = ?2 AND job > ?3 ORDER BY job LIMIT ?4
