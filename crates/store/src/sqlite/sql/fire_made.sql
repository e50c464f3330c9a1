-- fire: how many runs a bounded job has made, whatever plan saw.
SELECT runs_made FROM jobs WHERE id = ?1
