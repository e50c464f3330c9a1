-- settle: jobs that the system paused, at their new versions, and why. Where they stand is written before.
WITH n AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::integer[], $3::bigint[], $4::text[], $5::text[])
                  n(id, version, updated_at, note, paused_by)),
narrow AS (
    UPDATE jobs j SET version = n.version FROM n WHERE j.id = ANY(ARRAY[n.id]))
UPDATE defs d SET updated_at = n.updated_at, note = n.note, paused_by = n.paused_by
FROM n
WHERE d.id = ANY(ARRAY[n.id])
