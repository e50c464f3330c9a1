-- is_current: a run, if it is at this attempt and held.
SELECT 1 FROM live WHERE id = ?1 AND attempt = ?2 AND claim IS NOT NULL
