-- retain: whether somebody has had a day of history open for a while, and may well have it open for long.
SELECT EXISTS (
    SELECT 1 FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'relation' AND l.relation = to_regclass($1)
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND a.pid <> pg_backend_pid() AND a.xact_start < clock_timestamp() - interval '1 second')
