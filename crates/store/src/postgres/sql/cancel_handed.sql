-- cancel_run, change_job, fire: these are to end. What was said first stays. (`Handed::cancel`)
UPDATE handed h SET cancelled = true, trusted_until = least(n.now + greatest(h.beat_within, $3::bigint), h.timeout_at)
FROM unnest($1::uuid[], $2::bigint[]) n(run, now)
WHERE h.run = ANY(ARRAY[n.run]) AND NOT h.cancelled AND h.trusted_until IS NOT NULL
