-- alert_states: where these stand.
SELECT {alert_state s} FROM unnest($1::uuid[], $2::text[], $3::uuid[]) n(tenant, alert, job)
JOIN alert_states s ON s.tenant = n.tenant AND s.alert = n.alert AND s.job = n.job
