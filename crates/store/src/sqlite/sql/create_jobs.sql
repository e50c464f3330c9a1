-- create_jobs: the narrow row. A job that is there already is left alone: its answer was lost.
INSERT OR IGNORE INTO jobs (id, tenant, state, version, next_slot, due_at, slot_last, state_at, runs_made,
                            manual_runs, failures)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?10)
