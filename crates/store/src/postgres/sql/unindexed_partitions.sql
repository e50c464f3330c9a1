-- open: days of history that have no part of an index of all of it, the newest first.
SELECT substr(c.relname, 9)::bigint
FROM pg_inherits t JOIN pg_class c ON c.oid = t.inhrelid
WHERE t.inhparent = 'history'::regclass AND NOT t.inhdetachpending
  AND NOT EXISTS (SELECT 1 FROM pg_index x JOIN pg_inherits i ON i.inhrelid = x.indexrelid
                  WHERE x.indrelid = c.oid AND i.inhparent = to_regclass($1))
ORDER BY 1 DESC
