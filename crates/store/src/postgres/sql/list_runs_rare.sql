-- list_runs: runs that ended in other ways than success, newest first (one that was decided again is alive, and not
-- listed here): from an index of their own, state by state.
SELECT f.*
FROM unnest($3::smallint[]) w(state)
CROSS JOIN LATERAL (
    SELECT {history h}
    FROM history h
    WHERE h.state = w.state AND h.state <> {RunState::Succeeded} AND h.tenant = $1 AND h.id < $2 AND h.id >= $6
      AND NOT EXISTS (SELECT 1 FROM live WHERE live.id = h.id)
    ORDER BY h.id DESC LIMIT $4) f
WHERE $5::uuid IS NULL
ORDER BY f.id DESC LIMIT $4
