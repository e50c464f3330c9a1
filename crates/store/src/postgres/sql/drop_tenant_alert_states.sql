-- sweep: where a tenant's alerts stand.
DELETE FROM alert_states WHERE tenant = $1
