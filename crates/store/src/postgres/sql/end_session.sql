-- end_session, begin_session.
DELETE FROM sessions WHERE digest = $1
RETURNING {session}
