-- edit_user, drop_user: all of one user.
DELETE FROM sessions WHERE user_id = $1
