-- settle: a run of a slot whose first attempt succeeded enters a day of history, as `put_ended.sql` has it. What all of them
-- have in common is not bound.
INSERT OR REPLACE INTO history_{day} (id, job, tenant, kind, lane, state, attempt, lost, version, dispatched_at, settled_at,
                                      outcome, status, output, actor)
VALUES (?1, ?2, ?3, 0 /* RunKind::Slot */, ?4, 3 /* RunState::Succeeded */, 1, 0, ?5, ?6, ?7, 0 /* Outcome::Succeeded */,
        ?8, ?9, ?10)
