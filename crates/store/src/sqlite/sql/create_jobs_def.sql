-- create_jobs: the wide row.
INSERT INTO defs (id, tenant, key, gone, created_at, updated_at, note, doc, payload, paused_by, calendars, zone,
                  owner)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
