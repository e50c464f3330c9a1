-- get_replay: one of a tenant.
SELECT id, tenant, state, created_at, actor, rate, run_limit, doc, payload, step, cursor, scanned, started, skipped, updated_at, ended_at, note
FROM replays WHERE id = $1 AND tenant = $2
