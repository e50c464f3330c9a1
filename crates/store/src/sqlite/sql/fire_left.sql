-- fire: how many runs a bounded job has left, whatever plan saw.
SELECT runs_left FROM jobs WHERE id = ?1
