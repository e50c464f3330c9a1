-- join, raise_level: who joins waits.
SELECT level FROM level FOR UPDATE
