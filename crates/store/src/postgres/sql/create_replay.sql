-- create_replay: nothing of it is done yet.
INSERT INTO replays (id, tenant, created_at, actor, rate, run_limit, doc, payload, state, step, scanned, started, skipped, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, 0, 0, $10)
