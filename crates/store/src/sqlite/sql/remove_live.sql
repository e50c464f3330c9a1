-- fire, and every decision: a run leaves the live table.
DELETE FROM live WHERE id = ?1
