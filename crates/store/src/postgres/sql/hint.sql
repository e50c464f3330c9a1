-- hint: the hints that are gathered, in one text.
SELECT pg_notify($1, $2)
