-- retain: a day is taken out of history.
ALTER TABLE history DETACH PARTITION history_{day} CONCURRENTLY
