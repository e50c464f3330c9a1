-- open: one at a time. The number names this lock among all of the database.
SELECT pg_advisory_lock(7020665, hashtext('{schema}'))
