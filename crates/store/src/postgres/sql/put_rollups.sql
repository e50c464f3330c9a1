-- put_rollups: what a node has counted so far, over what it wrote before.
INSERT INTO rollups (tenant, step, at, counter, expires_at, doc)
SELECT * FROM unnest($1::uuid[], $2::smallint[], $3::bigint[], $4::uuid[], $5::bigint[], $6::bytea[])
ON CONFLICT (tenant, step, at, counter) DO UPDATE SET doc = excluded.doc
