-- find_user: by name.
SELECT {user u}, m.tenant, m.role
FROM users u LEFT JOIN members m ON m.user_id = u.id WHERE u.name = ?1
