-- running_replays: those that are under way, the oldest first.
SELECT id, tenant, state, created_at, actor, rate, run_limit, doc, payload, step, cursor, scanned, started, skipped, updated_at, ended_at, note
FROM replays WHERE ended_at IS NULL ORDER BY id LIMIT ?1
