-- alerts_of: the alerts of a rule, by job.
SELECT tenant, alert, job, step, firing, since, run, state, reason, at, causes, sent, send_at, ended_by, ended_at FROM alert_states WHERE tenant = $1 AND alert = $2 AND ($3::uuid IS NULL OR job > $3) ORDER BY job LIMIT $4
