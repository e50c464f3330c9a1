-- open: a migration was run.
INSERT INTO schema_migrations (number) VALUES ($1)
