-- orphans: every claim, in the order of runs. The presences that have ended are picked by the caller, and
-- this is run only while there may be some.
SELECT id, job, claim FROM live WHERE claim IS NOT NULL ORDER BY id
