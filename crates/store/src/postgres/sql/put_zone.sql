-- create_jobs, change_job, put_calendar: a zone that is followed for the first time, by the tables that compute slots; while
-- a node with other tables lives, by a number that stands for none.
INSERT INTO zones (name, digest)
SELECT $1, CASE WHEN EXISTS (SELECT FROM presences WHERE ended_at IS NULL AND tables <> $4) THEN $3::bigint ELSE $2::bigint END
ON CONFLICT (name) DO NOTHING
