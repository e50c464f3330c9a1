-- create_jobs, change_job: a zone that a job follows for the first time, by the tables that the job was aimed by.
INSERT INTO zones (name, digest) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING
