-- list_jobs: jobs of an owner, newest first, by their own index. Labels are checked by the caller.
SELECT d.id FROM defs d INDEXED BY defs_owner JOIN jobs j ON j.id = d.id
WHERE d.tenant = ?1 AND d.owner = ?5 AND d.id < ?2 AND (?3 >> j.state) & 1
  AND (?4 IS NULL OR instr(lower(d.key), ?4))
ORDER BY d.id DESC
