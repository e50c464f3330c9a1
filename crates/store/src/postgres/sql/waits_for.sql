-- open: sessions that have something of a schema locked, the oldest transactions first.
SELECT coalesce(string_agg(format('process %s (%s, %s for %s s)', pid, name, state, seconds), ', '), 'nobody any more')
FROM (SELECT a.pid, coalesce(nullif(a.application_name, ''), a.usename::text, 'unknown') AS name,
             coalesce(a.state, 'unknown') AS state,
             coalesce(floor(extract(epoch FROM clock_timestamp() - a.xact_start))::text, '?') AS seconds
      FROM pg_stat_activity a
      WHERE a.pid <> pg_backend_pid()
        AND a.pid IN (SELECT l.pid FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
                      JOIN pg_namespace n ON n.oid = c.relnamespace
                      WHERE l.granted AND n.nspname = $1
                        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()))
      ORDER BY a.xact_start NULLS LAST LIMIT 3) w
