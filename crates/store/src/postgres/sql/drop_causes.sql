-- move_alerts: causes that were considered.
DELETE FROM alert_causes WHERE no = ANY($1::bigint[])
