-- begin_session: those that have ended.
DELETE FROM sessions WHERE used_at <= ?1 OR created_at <= ?2
