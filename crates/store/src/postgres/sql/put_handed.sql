-- hand_over, heartbeat: what is kept of attempts, as it stands now.
INSERT INTO handed (run, job, shard, attempt, node, dispatched_at, beat_within, timeout_at, trusted_until, cancelled, beaten_at, progress)
SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::integer[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
                     $9::bigint[], $10::boolean[], $11::bigint[], $12::text[])
ON CONFLICT (run) DO UPDATE SET attempt = excluded.attempt, node = excluded.node, dispatched_at = excluded.dispatched_at,
    beat_within = excluded.beat_within, timeout_at = excluded.timeout_at, trusted_until = excluded.trusted_until,
    cancelled = excluded.cancelled, beaten_at = excluded.beaten_at, progress = excluded.progress
