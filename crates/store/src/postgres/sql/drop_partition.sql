-- retain: and goes whole.
DROP TABLE IF EXISTS history_{day};
DELETE FROM stragglers WHERE day = {day};
