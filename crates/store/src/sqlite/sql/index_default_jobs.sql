-- create_tenant: once there are others, few of all jobs may be those of the tenant that is always there.
CREATE INDEX IF NOT EXISTS jobs_default ON jobs (tenant) WHERE tenant = 0
