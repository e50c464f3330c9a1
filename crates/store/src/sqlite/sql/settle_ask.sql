-- settle: what was asked of a run that could not be retried or released.
SELECT ask FROM live WHERE id = ?1 AND claim = ?2 AND attempt = ?3
