-- move_replay, cancel_replay: progress, if the step before it stands and it is still under way.
UPDATE replays SET step = $2, state = $3, cursor = $4, scanned = $5, started = $6, skipped = $7, updated_at = $8, ended_at = $9, note = $10
WHERE id = $1 AND step = $2 - 1 AND ended_at IS NULL
