-- open: nothing of a migration is left to be made.
DELETE FROM schema_migrations WHERE number = $1
