-- retain: whether a day has more rows than so many.
SELECT 1 FROM history_{day} LIMIT 1 OFFSET ?1
