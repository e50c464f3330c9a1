-- raise_level: it only grows.
UPDATE level SET level = ?1 WHERE one = 1 AND level < ?1
