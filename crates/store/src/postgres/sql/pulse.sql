-- pulse: the oldest slot and the oldest run that nobody holds, and how much is alive. Every node asks every second, so what
-- is many is counted as the server believes it to be.
SELECT (SELECT min(due_at) FROM jobs WHERE due_at IS NOT NULL),
       (SELECT min(due_at) FROM live WHERE claim IS NULL AND NOT waiting),
       (SELECT CASE WHEN few.n > 10000 THEN greatest(few.n, pg_stat_get_live_tuples('live'::regclass)) ELSE few.n END
        FROM (SELECT count(*) AS n FROM (SELECT FROM live LIMIT 10001) l) few)
