-- move_alerts: where an alert stands now.
INSERT OR REPLACE INTO alert_states (tenant, alert, job, step, firing, since, run, state, reason, at, causes, sent, send_at, ended_by, ended_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
