-- move_alerts: where an alert stands now.
INSERT OR REPLACE INTO alert_states ({alert_state})
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
