-- create_jobs: both rows of new jobs that name nothing and are named by nothing.
WITH narrow AS (
    INSERT INTO jobs (id, tenant, shard, version, state, state_at, next_slot, due_at)
    SELECT id, tenant, shard, 1, {JobState::Active}, made_at, next_slot, due_at
    FROM unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[])
         n(id, tenant, shard, made_at, next_slot, due_at))
INSERT INTO defs (id, tenant, gone, created_at, updated_at, doc, payload, zone)
SELECT id, tenant, false, made_at, made_at, doc, payload, zone
FROM unnest($1::uuid[], $2::uuid[], $4::bigint[], $7::bytea[], $8::bytea[], $9::text[])
     n(id, tenant, made_at, doc, payload, zone)
