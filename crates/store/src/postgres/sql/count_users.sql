-- create_user: how many there are.
SELECT count(*) FROM users
