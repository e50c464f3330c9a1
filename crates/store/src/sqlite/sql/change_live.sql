-- every decision: a living run goes on otherwise. Its claim goes, stays or goes to the outside (?6 is 0, 1 or -1); its
-- attempts (?10) may stay as they are.
UPDATE live SET state = ?2, attempt = ?3, due_at = ?4, lost = ?5, claim = CASE ?6 WHEN 1 THEN claim WHEN -1 THEN -1 END,
                ask = ?7, waiting = ?8, dispatched_at = ?9, attempts = iif(?10, ?11, attempts), wait_reason = ?12,
                wait_until = ?13
WHERE id = ?1
