-- read_rollups: what each node counted of a tenant in some steps.
SELECT at, doc FROM rollups WHERE tenant = ?1 AND step = ?2 AND at >= ?3 AND at < ?4
