-- raise_level: it only grows.
UPDATE level SET level = $1 WHERE level < $1
