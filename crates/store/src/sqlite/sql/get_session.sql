-- get_session.
SELECT {session} FROM sessions WHERE digest = ?1
