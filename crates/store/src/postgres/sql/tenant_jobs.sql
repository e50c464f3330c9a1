-- retain: jobs of a tenant that is being deleted, those that are marked as deleted left out or not ($2).
SELECT id FROM defs WHERE tenant = $1 AND ($2 OR NOT gone) ORDER BY tenant, id LIMIT $3
