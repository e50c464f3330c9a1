-- fire: fails if another run of a job came to life while its own was being made: someone started it by hand. Asked when the
-- jobs that moved are locked by that, so whoever comes later sees what was made.
SELECT 1 / CASE WHEN EXISTS (
    SELECT 1 FROM unnest($1::uuid[], $2::uuid[]) n(job, run)
    JOIN live b ON b.id = n.run JOIN live o ON o.job = n.job AND o.id <> n.run) THEN 0 ELSE 1 END
