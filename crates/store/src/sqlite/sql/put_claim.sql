-- claim, claim_due: a run gets its holder as decided.
UPDATE live SET claim = ?2, state = ?3, due_at = ?4, version = ?5 WHERE id = ?1
