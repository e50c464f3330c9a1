-- put_link.
INSERT INTO console_links (digest, key_id, tenant, expires_at) VALUES (?1, ?2, ?3, ?4)
