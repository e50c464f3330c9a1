-- list_users: by name; the rows of one user need not be together.
SELECT {user u}, m.tenant, m.role
FROM (SELECT * FROM users WHERE name > $1 ORDER BY name LIMIT $2) u LEFT JOIN members m ON m.user_id = u.id
