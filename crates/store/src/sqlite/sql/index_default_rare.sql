-- create_tenant: once there are others, few of all paused, invalid and deleted jobs may be those of the tenant that is always there.
CREATE INDEX IF NOT EXISTS jobs_default_rare ON jobs (tenant, state) WHERE tenant = 0 AND (state = 1 /* JobState::Paused */ OR state > 2)
