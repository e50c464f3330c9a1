-- start_run: whether a run is in the live table.
SELECT 1 FROM live WHERE id = ?1
