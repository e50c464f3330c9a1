-- create_tenant: its name is free.
INSERT INTO tenants ({tenant})
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, NULL)
