-- create_tenant: its name is free.
INSERT INTO tenants (id, name, note, created_at) VALUES ($1, $2, $3, $4)
