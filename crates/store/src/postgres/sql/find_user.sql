-- find_user: by name.
SELECT u.id, u.name, u.password, u.created_at, u.updated_at, m.tenant, m.role
FROM users u LEFT JOIN members m ON m.user_id = u.id WHERE u.name = $1
