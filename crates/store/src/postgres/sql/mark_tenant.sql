-- delete_tenant: it is being deleted from now on.
UPDATE tenants SET deleting_at = $2 WHERE id = $1
