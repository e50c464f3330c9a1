-- create_jobs: the narrow rows.
INSERT INTO jobs (id, tenant, shard, version, state, state_at, next_slot, due_at, slot_last, runs_made, failures)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::integer[], $5::smallint[], $6::bigint[], $7::bigint[],
                     $8::bigint[], $9::bigint[], $10::bigint[], $11::integer[])
