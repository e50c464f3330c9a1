-- change_job, withdraw, settle: skip records of jobs from a moment on, and the last one before it within its day.
SELECT n.job, h.id, h.stretch_last, h.stretch_count
FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) n(job, first, day)
CROSS JOIN LATERAL (
    SELECT h.id, h.stretch_last, h.stretch_count, h.state FROM history h
    WHERE h.job = n.job AND h.id >= n.first AND h.kind = {RunKind::Slot}
    UNION ALL
    (SELECT h.id, h.stretch_last, h.stretch_count, h.state FROM history h
     WHERE h.job = n.job AND h.id >= n.day AND h.id < n.first AND h.kind = {RunKind::Slot} ORDER BY h.id DESC LIMIT 1)) h
WHERE h.state = {RunState::Skipped}
