-- alert_causes: those that are not considered yet, the oldest first.
SELECT no, tenant, job, run, state, reason, count, at FROM alert_causes ORDER BY no LIMIT $1
