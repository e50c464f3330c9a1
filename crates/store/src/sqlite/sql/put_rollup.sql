-- put_rollups: what a node has counted so far, over what it wrote before.
INSERT INTO rollups (tenant, step, at, counter, expires_at, doc) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (tenant, step, at, counter) DO UPDATE SET doc = excluded.doc
