-- list_versions: newest first; where the job stands is as it is now.
SELECT {job}, v.version, v.ended_at, v.ended_by
FROM job_versions v
JOIN jobs j ON j.id = v.job AND j.tenant = v.tenant
JOIN LATERAL (
    SELECT d.created_at, v.updated_at, d.note, v.key, d.paused_by, v.doc, v.calendars, v.payload, d.owner, d.once_until
    FROM defs d WHERE d.id = j.id AND d.tenant = j.tenant) d ON true
WHERE v.tenant = $1 AND v.job = $2 AND v.version < $3
ORDER BY v.version DESC LIMIT $4
