-- move_alerts: whether a cause is still to be considered.
SELECT 1 FROM alert_causes WHERE no = ?1
