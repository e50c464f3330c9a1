-- hints: who tells, so that nobody hears itself.
SELECT pg_backend_pid()
