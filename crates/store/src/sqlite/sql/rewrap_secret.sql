-- rewrap_secrets: one of them, unless somebody changed it meanwhile.
UPDATE secrets SET master_key = ?4, wrapped = ?5 WHERE tenant = ?1 AND name = ?2 AND version = ?3
