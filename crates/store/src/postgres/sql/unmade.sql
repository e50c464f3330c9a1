-- open: migrations of which something is still to be made.
SELECT -number FROM schema_migrations WHERE number < 0 ORDER BY number DESC
