-- fire: the compare-and-swap. A job moves onward if it is active, at the version and the slot that plan saw.
UPDATE jobs SET next_slot = ?1, due_at = ?2, slot_last = coalesce(?3, slot_last), state = ?4,
                state_at = coalesce(?5, state_at)
WHERE id = ?6 AND version = ?7 AND next_slot = ?8 AND state = 0
