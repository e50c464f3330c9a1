-- retain: nothing is left of a day.
DROP TABLE gone_{day}
