-- join, raise_level: the level that definitions may need.
SELECT level FROM level WHERE one = 1
