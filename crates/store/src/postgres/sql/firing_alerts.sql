-- firing_alerts: those that fire, in the order of their keys, each with the first run of its job after the last cause that
-- succeeded since.
SELECT {alert_state s}, h.id, h.settled_at
FROM (SELECT * FROM alert_states WHERE firing AND (tenant, alert, job) > ($1::uuid, $2::text, $3::uuid)
      ORDER BY tenant, alert, job LIMIT $4) s
LEFT JOIN LATERAL (SELECT id, settled_at FROM history h
                   WHERE h.job = s.job AND h.id > s.run AND h.state = {RunState::Succeeded} AND h.settled_at >= s.at
                   ORDER BY h.id LIMIT 1) h ON true
ORDER BY s.tenant, s.alert, s.job
