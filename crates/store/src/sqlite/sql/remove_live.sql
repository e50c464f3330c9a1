-- withdraw, cancel_run and others: a run leaves the live table.
DELETE FROM live WHERE id = ?1
