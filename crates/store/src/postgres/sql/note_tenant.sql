-- note_tenant: what it is for.
UPDATE tenants SET note = $2 WHERE id = $1
