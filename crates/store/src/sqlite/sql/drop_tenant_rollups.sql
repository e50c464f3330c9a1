-- retain: what was counted of a tenant that goes.
DELETE FROM rollups WHERE tenant = ?1
