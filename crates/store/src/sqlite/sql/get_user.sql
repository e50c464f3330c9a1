-- get_user, edit_user, drop_user: a row for each tenant that the user belongs to, and one if there is none.
SELECT {user u}, m.tenant, m.role
FROM users u LEFT JOIN members m ON m.user_id = u.id WHERE u.id = ?1
