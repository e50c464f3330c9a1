-- settle and others: whether a day of history is there.
SELECT EXISTS (SELECT 1 FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
               WHERE i.inhparent = 'history'::regclass AND c.relname = $1 AND NOT i.inhdetachpending)
