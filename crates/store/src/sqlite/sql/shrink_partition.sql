-- retain: the oldest rows of a day go.
DELETE FROM {table} WHERE id <= (SELECT max(id) FROM (SELECT id FROM {table} ORDER BY id LIMIT ?1))
