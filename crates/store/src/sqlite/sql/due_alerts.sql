-- due_alerts: those that are to be sent by now.
SELECT {alert_state} FROM alert_states
WHERE send_at IS NOT NULL AND send_at <= ?1 ORDER BY send_at, tenant, alert, job LIMIT ?2
