-- create_tenant: once there are others, few of all entries may be those of the tenant that is always there.
CREATE INDEX IF NOT EXISTS audit_default ON audit (tenant, seq) WHERE tenant = 0
