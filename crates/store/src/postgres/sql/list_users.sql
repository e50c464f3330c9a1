-- list_users: by name; the rows of one user need not be together.
SELECT u.id, u.name, u.password, u.created_at, u.updated_at, m.tenant, m.role
FROM (SELECT * FROM users WHERE name > $1 ORDER BY name LIMIT $2) u LEFT JOIN members m ON m.user_id = u.id
