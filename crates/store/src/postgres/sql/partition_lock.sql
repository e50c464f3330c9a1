-- settle, retain and others: one node makes or drops days, the others wait for it.
SELECT pg_advisory_xact_lock(7020666, hashtext(current_schema()))
