-- settle and others: a run enters a day of history. A slot that was taken back and decided again has
-- the same name; its later end is what counts.
INSERT OR REPLACE INTO history_{day} (id, job, tenant, kind, slot, replay_of, due_at, lane, state, reason,
                                      attempt, lost, version, dispatched_at, settled_at, outcome, status,
                                      error, output, stretch_last, stretch_count, payload, attempts, note, actor)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23,
        ?24, ?25)
