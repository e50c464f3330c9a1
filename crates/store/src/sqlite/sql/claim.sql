-- claim, claim_due: the views in which a run is free and does not wait. The next attempt gets its holder; it is an attempt at
-- the job as it stands now. A retry that far ahead was set by a clock that has gone back: it is due now.
UPDATE live SET claim = ?2, state = 0 /* RunState::Ready */,
                due_at = CASE WHEN state = 2 /* RunState::Retrying */ AND due_at > ?3 + ?4 THEN ?3 ELSE due_at END,
                version = (SELECT version FROM jobs WHERE id = live.job)
WHERE id = ?1 AND claim IS NULL AND waiting = 0
RETURNING version, due_at
