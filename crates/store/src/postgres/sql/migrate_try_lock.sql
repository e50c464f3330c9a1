-- open: the same lock, if nobody has it.
SELECT pg_try_advisory_lock(7020665, hashtext($1))
