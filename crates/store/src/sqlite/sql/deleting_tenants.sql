-- retain: tenants that are being deleted.
SELECT {tenant} FROM tenants
WHERE deleting_at IS NOT NULL ORDER BY deleting_at LIMIT ?1
