-- change_job, withdraw, settle: skip records whose last slots are decided again.
UPDATE history h SET stretch_last = n.last, stretch_count = n.count
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[]) n(id, last, count) WHERE h.id = n.id
