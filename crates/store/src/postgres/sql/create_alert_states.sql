-- move_alerts: alerts that begin.
INSERT INTO alert_states ({alert_state})
SELECT * FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::integer[], $5::boolean[], $6::bigint[], $7::uuid[], $8::smallint[],
                     $9::smallint[], $10::bigint[], $11::bigint[], $12::integer[], $13::bigint[], $14::uuid[], $15::bigint[])
ON CONFLICT DO NOTHING
