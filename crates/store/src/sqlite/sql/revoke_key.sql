-- revoke_key: once.
UPDATE keys SET revoked_at = ?2, change = ?3 WHERE id = ?1
