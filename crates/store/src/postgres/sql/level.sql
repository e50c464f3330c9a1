-- join: the level that definitions may need.
SELECT level FROM level
