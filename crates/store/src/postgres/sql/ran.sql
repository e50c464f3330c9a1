-- fire, change_job, withdraw: which slots of jobs have a run that has ended.
SELECT n.job, h.id FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) n(job, first, last)
CROSS JOIN LATERAL (
    SELECT h.id FROM history h
    WHERE h.job = n.job AND h.id >= n.first AND h.id < n.last AND h.kind = {RunKind::Slot} AND h.state <> {RunState::Skipped}) h
