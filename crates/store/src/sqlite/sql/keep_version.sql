-- change_job: the version that ends, before the next is written.
INSERT INTO job_versions (job, version, tenant, updated_at, ended_at, ended_by, key, doc, payload, calendars)
SELECT j.id, j.version, j.tenant, d.updated_at, ?2, ?3, d.key, d.doc, d.payload, d.calendars
FROM jobs j JOIN defs d ON d.id = j.id WHERE j.id = ?1
