-- settle: the run leaves the live table if its claim is the one named.
DELETE FROM live WHERE id = ?1 AND claim = ?2 AND attempt = ?3
