-- jobs_under: jobs whose schedule follows a zone.
SELECT tenant, id FROM defs INDEXED BY defs_zone WHERE zone = ?1 AND id > ?2 ORDER BY id LIMIT ?3
