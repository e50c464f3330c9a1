-- hint: what there is to tell, in one text.
SELECT pg_notify($1, $2)
