-- raise_level: one that lives and does not know a level.
SELECT node, version, tables, parts, level, kinds FROM presences WHERE ended_at IS NULL AND level < $1 ORDER BY no LIMIT 1
