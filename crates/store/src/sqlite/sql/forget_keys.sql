-- create_key: those of a tenant that ended long ago.
DELETE FROM keys WHERE tenant = ?1 AND (revoked_at < ?2 OR expires_at < ?2)
