-- settle and others: a day of history, made before its first run ends. A table that is attached keeps nobody waiting,
-- unlike one that is created as a partition.
CREATE TABLE history_{day} (LIKE history INCLUDING DEFAULTS);
