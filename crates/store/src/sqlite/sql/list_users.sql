-- list_users: by name; the rows of one user need not be together.
SELECT {user}, tenant, role
FROM (SELECT * FROM users WHERE name > ?1 ORDER BY name LIMIT ?2) LEFT JOIN members ON user_id = id
