-- retain: the days of history, and whether one was left half taken out.
SELECT c.relname::text, i.inhdetachpending FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'history'::regclass ORDER BY c.relname
