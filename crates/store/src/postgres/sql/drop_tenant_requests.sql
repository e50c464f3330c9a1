-- retain: answered requests of a tenant whose jobs are gone.
DELETE FROM idempotency WHERE tenant = $1
