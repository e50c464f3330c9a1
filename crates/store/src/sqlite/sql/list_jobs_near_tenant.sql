-- list_jobs: the same look at the newest jobs of any tenant but the one that is always there, by an index of their own.
SELECT d.id, (SELECT (?3 >> j.state) & 1 FROM jobs j WHERE j.id = d.id)
             AND (?4 IS NULL OR instr(lower(d.key), ?4))
FROM defs d INDEXED BY defs_tenant
WHERE d.tenant = ?1 AND d.tenant <> 0 AND d.id < ?2 ORDER BY d.id DESC LIMIT ?5
