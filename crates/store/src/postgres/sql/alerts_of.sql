-- alerts_of: the alerts of a rule, by job.
SELECT {alert_state} FROM alert_states WHERE tenant = $1 AND alert = $2 AND ($3::uuid IS NULL OR job > $3) ORDER BY job LIMIT $4
