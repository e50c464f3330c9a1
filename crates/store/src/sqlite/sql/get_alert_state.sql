-- alert_states: where one stands.
SELECT {alert_state} FROM alert_states WHERE tenant = ?1 AND alert = ?2 AND job = ?3
