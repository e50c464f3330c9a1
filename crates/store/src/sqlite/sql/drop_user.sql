-- drop_user.
DELETE FROM users WHERE id = ?1
