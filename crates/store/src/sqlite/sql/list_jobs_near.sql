-- list_jobs: a look at so many of the newest jobs, and which of them fit. ?3 has a bit for every state that
-- is wanted, ?4 is a part of the key or nothing.
SELECT j.id, (?3 >> j.state) & 1
             AND (?4 IS NULL OR EXISTS (SELECT 1 FROM defs d WHERE d.id = j.id AND instr(lower(d.key), ?4)))
FROM jobs j WHERE j.tenant = 0 AND j.tenant = ?1 AND j.id < ?2 ORDER BY j.id DESC LIMIT ?5
