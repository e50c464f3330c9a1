-- create_jobs: the wide rows.
INSERT INTO defs (id, tenant, key, gone, created_at, updated_at, note, doc, payload, paused_by, calendars, zone,
                  owner)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::boolean[], $5::bigint[], $6::bigint[], $7::text[],
                     $8::bytea[], $9::bytea[], $10::text[], $11::boolean[], $12::text[], $13::text[])
