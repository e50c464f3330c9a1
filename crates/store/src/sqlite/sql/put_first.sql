-- fire: a run of a slot comes to life, as `put_live.sql` has it. What all of them have in common is not bound.
INSERT OR IGNORE INTO live (id, job, tenant, kind, due_at, lane, state, attempt, lost, version, claim, waiting)
VALUES (?1, ?2, ?3, 0 /* RunKind::Slot */, ?4, ?5, 0 /* RunState::Ready */, 1, 0, ?6, ?7, 0)
