-- create_jobs: both rows of new jobs that name nothing and are named by nothing, their entries in the audit log, and what their
-- tenants have then. Nothing at all if one of the tenants may not have as much: then each is looked at by itself. $18 to $20 are
-- what each tenant gets, $21 and $22 what it may have if nothing is said of it.
WITH full_ones AS MATERIALIZED (
    SELECT count(*) AS count
    FROM unnest($18::uuid[], $19::bigint[], $20::bigint[]) n(tenant, jobs, bytes)
    LEFT JOIN tenants t ON t.id = n.tenant
    CROSS JOIN LATERAL (SELECT coalesce(sum(jobs), 0)::bigint AS jobs, coalesce(sum(payload_bytes), 0)::bigint AS bytes
                        FROM tenant_use WHERE tenant = n.tenant) u
    WHERE u.jobs + n.jobs > coalesce(t.jobs_max, $21) OR n.bytes > 0 AND u.bytes + n.bytes > coalesce(t.payload_bytes_max, $22)),
narrow AS (
    INSERT INTO jobs (id, tenant, shard, version, state, state_at, next_slot, due_at)
    SELECT id, tenant, shard, 1, {JobState::Active}, made_at, next_slot, due_at
    FROM unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::bigint[], $5::bigint[], $6::bigint[])
         n(id, tenant, shard, made_at, next_slot, due_at)
    WHERE (SELECT count FROM full_ones) = 0),
entered AS (
    INSERT INTO audit (at, tenant, actor, key, address, request, action, subject, after)
    SELECT coalesce($11::bigint, now_ms()), tenant, actor, key, address, request, 'job.create', subject, after
    FROM unnest($2::uuid[], $12::text[], $13::uuid[], $14::text[], $15::text[], $16::text[], $17::text[])
         n(tenant, actor, key, address, request, subject, after)
    WHERE subject IS NOT NULL AND (SELECT count FROM full_ones) = 0),
counted AS (
    INSERT INTO tenant_use AS u (tenant, part, jobs, payload_bytes)
    SELECT tenant, pg_backend_pid() % 16, jobs, bytes
    FROM unnest($18::uuid[], $19::bigint[], $20::bigint[]) n(tenant, jobs, bytes)
    WHERE (SELECT count FROM full_ones) = 0
    ON CONFLICT (tenant, part) DO UPDATE SET jobs = u.jobs + excluded.jobs,
                                             payload_bytes = u.payload_bytes + excluded.payload_bytes)
INSERT INTO defs (id, tenant, gone, created_at, updated_at, doc, payload, zone, owner)
SELECT id, tenant, false, made_at, made_at, doc, payload, zone, owner
FROM unnest($1::uuid[], $2::uuid[], $4::bigint[], $7::bytea[], $8::bytea[], $9::text[], $10::text[])
     n(id, tenant, made_at, doc, payload, zone, owner)
WHERE (SELECT count FROM full_ones) = 0
