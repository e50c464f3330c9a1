-- fire, start_run: runs come to life. One that is alive already is an error, never ignored.
INSERT INTO live (id, job, tenant, due_at, version, attempt, lost, claim, shard, kind, lane, state, ask, waiting,
                  exclusive, slot, replay_of, dispatched_at, payload, attempts)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::bigint[], $5::integer[], $6::integer[], $7::integer[],
                     $8::integer[], $9::smallint[], $10::smallint[], $11::smallint[], $12::smallint[],
                     $13::smallint[], $14::boolean[], $15::boolean[], $16::bigint[], $17::uuid[], $18::bigint[],
                     $19::bytea[], $20::bytea[])
