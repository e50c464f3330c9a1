-- open: the last migration that was run.
SELECT max(number) FROM schema_migrations
