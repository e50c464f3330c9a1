-- alert_states: where one stands.
SELECT tenant, alert, job, step, firing, since, run, state, reason, at, causes, sent, send_at, ended_by, ended_at FROM alert_states WHERE tenant = ?1 AND alert = ?2 AND job = ?3
