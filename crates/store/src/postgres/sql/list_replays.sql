-- list_replays: those of a tenant, newest first.
SELECT id, tenant, state, created_at, actor, rate, run_limit, doc, payload, step, cursor, scanned, started, skipped, updated_at, ended_at, note
FROM replays WHERE tenant = $1 AND id < $2 ORDER BY id DESC LIMIT $3
