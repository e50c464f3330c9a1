-- sweep: a tenant's alert rules.
DELETE FROM alerts WHERE tenant = ?1
