-- retain, settle and others: tables of days, some or all, and whether one was left half taken out of history; none of both
-- if it was taken out.
SELECT c.relname::text, i.inhdetachpending
FROM pg_class h JOIN pg_class c ON c.relnamespace = h.relnamespace
LEFT JOIN pg_inherits i ON i.inhrelid = c.oid AND i.inhparent = h.oid
WHERE h.oid = 'history'::regclass AND c.relkind = 'r'
  AND CASE WHEN $1::text[] IS NULL THEN c.relname ~ '^history_[0-9]+$' ELSE c.relname = ANY($1) END
