-- settle and others: one node makes a day, the others wait for it.
SELECT pg_advisory_xact_lock(hashtext(current_schema()), $1)
