-- settle and others: a day of history, made before its first run ends. A table that is attached keeps nobody waiting,
-- unlike one that is born a partition; one that retention has just taken out goes first.
DROP TABLE IF EXISTS history_{day};
CREATE TABLE history_{day} (LIKE history INCLUDING DEFAULTS);
ALTER TABLE history ATTACH PARTITION history_{day} FOR VALUES FROM ({from}) TO ({to});
