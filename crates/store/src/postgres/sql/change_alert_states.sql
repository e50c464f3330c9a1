-- move_alerts: where alerts stand now, over the step before.
UPDATE alert_states s SET step = n.step, firing = n.firing, since = n.since, run = n.run, state = n.state, reason = n.reason,
    at = n.at, causes = n.causes, sent = n.sent, send_at = n.send_at, ended_by = n.ended_by, ended_at = n.ended_at
FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::integer[], $5::boolean[], $6::bigint[], $7::uuid[], $8::smallint[],
            $9::smallint[], $10::bigint[], $11::bigint[], $12::integer[], $13::bigint[], $14::uuid[], $15::bigint[])
     n({alert_state})
WHERE s.tenant = n.tenant AND s.alert = n.alert AND s.job = n.job AND s.step = n.step - 1
