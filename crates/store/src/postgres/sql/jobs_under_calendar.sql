-- jobs_under, drop_calendar: jobs that name a calendar.
SELECT tenant, job FROM calendar_jobs WHERE tenant = $1 AND name = $2 AND ($3::uuid IS NULL OR job > $3)
ORDER BY job LIMIT $4
