-- retain: no range at or above the oldest live run is dropped.
SELECT id FROM live ORDER BY id LIMIT 1
