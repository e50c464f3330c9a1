-- claim: the next attempt of a run gets its holder; it is an attempt at the job as it stands now.
UPDATE live SET claim = ?2, state = 0, version = (SELECT version FROM jobs WHERE id = live.job)
WHERE id = ?1 AND claim IS NULL AND waiting = 0
RETURNING version
