-- open_link: of several who open it, one gets it.
DELETE FROM console_links WHERE digest = ?1 RETURNING digest, key_id, tenant, expires_at
