-- settle and others: runs enter history. A slot that was taken back and decided again has the same name; its later end
-- is what counts.
INSERT INTO history (id, job, tenant, kind, slot, replay_of, due_at, lane, state, reason, attempt, lost, version, dispatched_at,
                     settled_at, outcome, status, error, output, stretch_last, stretch_count, payload, attempts,
                     note, actor)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::smallint[], $5::bigint[], $6::uuid[], $7::bigint[],
                     $8::smallint[], $9::smallint[], $10::smallint[], $11::integer[], $12::integer[], $13::integer[],
                     $14::bigint[], $15::bigint[], $16::smallint[], $17::integer[], $18::text[], $19::bytea[],
                     $20::bigint[], $21::bigint[], $22::bytea[], $23::bytea[], $24::text[], $25::text[])
ON CONFLICT (id) DO UPDATE SET
    job = excluded.job, tenant = excluded.tenant, kind = excluded.kind, slot = excluded.slot,
    replay_of = excluded.replay_of, due_at = excluded.due_at, lane = excluded.lane, state = excluded.state,
    reason = excluded.reason, attempt = excluded.attempt, lost = excluded.lost, version = excluded.version,
    dispatched_at = excluded.dispatched_at, settled_at = excluded.settled_at, outcome = excluded.outcome,
    status = excluded.status, error = excluded.error, output = excluded.output, stretch_last = excluded.stretch_last,
    stretch_count = excluded.stretch_count, payload = excluded.payload, attempts = excluded.attempts,
    note = excluded.note, actor = excluded.actor
