-- retain: a day of history goes whole.
DROP TABLE history_{day};
DELETE FROM ranges WHERE day = {day};
