-- retain: rollups that were kept long enough.
DELETE FROM rollups WHERE (tenant, step, at, counter) IN
    (SELECT tenant, step, at, counter FROM rollups INDEXED BY rollups_age WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)
