-- sweep: ends of a tenant's runs that were noted.
DELETE FROM alert_causes WHERE tenant = ?1
