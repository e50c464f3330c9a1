-- alert_states: where these stand.
SELECT s.tenant, s.alert, s.job, s.step, s.firing, s.since, s.run, s.state, s.reason, s.at, s.causes, s.sent, s.send_at, s.ended_by, s.ended_at FROM unnest($1::uuid[], $2::text[], $3::uuid[]) n(tenant, alert, job)
JOIN alert_states s ON s.tenant = n.tenant AND s.alert = n.alert AND s.job = n.job
