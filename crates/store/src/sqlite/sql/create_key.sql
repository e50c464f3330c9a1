-- create_key, create_first_key: called again, it is the same key.
INSERT INTO keys ({key}, change)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (id) DO NOTHING
