-- jobs_under: jobs that follow a zone, by their schedule or by a calendar.
(SELECT tenant, id FROM defs WHERE zone = $1 AND ($2::uuid IS NULL OR id > $2) ORDER BY id LIMIT $3)
UNION
(SELECT c.tenant, u.job FROM calendars c CROSS JOIN LATERAL (
     SELECT job FROM calendar_jobs
     WHERE tenant = c.tenant AND name = c.name AND ($2::uuid IS NULL OR job > $2) ORDER BY job LIMIT $3) u
 WHERE calendar_zone(c.doc) = $1)
ORDER BY id LIMIT $3
