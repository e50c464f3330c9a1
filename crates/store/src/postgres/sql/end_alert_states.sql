-- move_alerts: alerts that are over, at the step before.
DELETE FROM alert_states s
USING unnest($1::uuid[], $2::text[], $3::uuid[], $4::integer[]) n(tenant, alert, job, step)
WHERE s.tenant = n.tenant AND s.alert = n.alert AND s.job = n.job AND s.step = n.step - 1
