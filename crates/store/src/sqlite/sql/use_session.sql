-- use_session: a clock that went back changes nothing.
UPDATE sessions SET used_at = max(used_at, ?2), tenant = ?3 WHERE digest = ?1
