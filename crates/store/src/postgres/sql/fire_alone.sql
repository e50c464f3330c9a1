-- fire: fails if another run of a job came to life while its own was being made: someone started it by hand. Asked when the
-- jobs that moved are locked by that, so whoever comes later sees what was made. (Whether another lives is asked first:
-- nearly always none does.)
SELECT 1 / CASE WHEN EXISTS (
    SELECT 1 FROM unnest($1::uuid[], $2::uuid[]) n(job, run)
    WHERE (SELECT 1 FROM live o WHERE o.job = n.job AND o.id <> n.run LIMIT 1) = 1
      AND (SELECT 1 FROM live b WHERE b.id = n.run) = 1) THEN 0 ELSE 1 END
