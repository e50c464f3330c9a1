-- every commit, once a second at most, and the close: the latest moment seen.
UPDATE clock SET seen = ?1 WHERE one = 1 AND seen < ?1
