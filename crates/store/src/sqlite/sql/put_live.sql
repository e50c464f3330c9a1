-- fire, start_run: a run comes to life. One that is alive already is left alone: the caller sees that
-- nothing changed, and nothing has to be undone.
INSERT OR IGNORE INTO live (id, job, tenant, kind, slot, replay_of, due_at, lane, state, attempt, lost,
                            version, claim, ask, waiting, dispatched_at, payload, attempts)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
