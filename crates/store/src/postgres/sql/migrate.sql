-- open: one at a time, and in our own schema. The number names this lock among all of the database.
SET LOCAL lock_timeout = '60s';
SET LOCAL statement_timeout = 0;
SELECT pg_advisory_xact_lock(7020665, hashtext('{schema}'));
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.schema_migrations (
    number     integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);
