-- create_tenant: once there are others, few of all jobs may be open ones of the tenant that is always there.
CREATE INDEX IF NOT EXISTS jobs_default_open ON jobs (tenant) WHERE tenant = 0 AND state <> 2 /* JobState::Finished */
