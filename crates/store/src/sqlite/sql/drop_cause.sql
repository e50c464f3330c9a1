-- move_alerts: a cause that was considered.
DELETE FROM alert_causes WHERE no = ?1
