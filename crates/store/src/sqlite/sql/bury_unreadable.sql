-- claim, orphans: a run that nobody can ever work on leaves the live table, if its holder is still the same.
DELETE FROM live WHERE id = ?1 AND claim = ?2
