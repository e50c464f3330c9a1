-- edit_user, drop_user: all of one user.
DELETE FROM members WHERE user_id = $1
