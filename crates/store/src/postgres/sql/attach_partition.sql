-- settle and others, retain: a day becomes a part of history, or becomes it again.
ALTER TABLE history ATTACH PARTITION history_{day} FOR VALUES FROM ({from}) TO ({to});
