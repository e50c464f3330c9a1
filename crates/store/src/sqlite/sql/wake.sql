-- wake, wake_due: the views in which a run waits for something outside of its job. It may be claimed from now on.
UPDATE live SET waiting = 0, wait_reason = NULL, wait_until = ?2
WHERE id = ?1 AND waiting = 2 AND wait_reason IS NOT NULL
RETURNING due_at, id, job, tenant, state
