-- pulse: the oldest slot and the oldest run that nobody holds, and how much is alive.
SELECT (SELECT min(due_at) FROM jobs WHERE due_at IS NOT NULL),
       (SELECT min(due_at) FROM live WHERE claim IS NULL AND NOT waiting),
       (SELECT count(*) FROM live)
