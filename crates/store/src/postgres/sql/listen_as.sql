-- hints: who sends, so that nobody hears itself.
SELECT pg_backend_pid()
