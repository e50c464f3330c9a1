-- open, and after a rollback: jobs that count their failures.
SELECT id FROM jobs INDEXED BY jobs_counting WHERE failures IS NOT NULL
