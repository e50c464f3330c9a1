-- list_keys: newest first.
SELECT {key} FROM keys WHERE tenant = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3
