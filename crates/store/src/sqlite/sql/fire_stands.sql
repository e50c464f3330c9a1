-- fire: whether the compare-and-swap would match, for the paths that must know before they write.
SELECT 1 FROM jobs WHERE id = ?1 AND version = ?2 AND next_slot = ?3 AND state = 0
