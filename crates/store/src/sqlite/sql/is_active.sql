-- fire, settle, park: whose job it is, if it is active.
SELECT tenant FROM jobs WHERE id = ?1 AND state = 0 /* JobState::Active */
