-- retain: no range at or above the oldest live run is dropped.
SELECT min(id) FROM live
