-- list_jobs: of any tenant but the one that is always there, newest first, by an index of their own; ?3 has a bit for every
-- state that is wanted, ?4 is a part of the key or nothing.
SELECT d.id FROM defs d INDEXED BY defs_tenant JOIN jobs j ON j.id = d.id
WHERE d.tenant = ?1 AND d.tenant <> 0 AND d.id < ?2 AND (?3 >> j.state) & 1
  AND (?4 IS NULL OR instr(lower(d.key), ?4))
ORDER BY d.id DESC LIMIT ?5
