-- fire: runs that were dispatched before a moment and ended after it, among the newest few of each job.
-- The limit comes before the moments: else a day of short runs would be read to find none. $5 and $6 bound the ids of the
-- whole batch: by them days are left out before anything is read. (Pairs, which only the index on both has, and which
-- the planner does not take for one job: then the order of ids alone would be the one wanted, and it might walk a whole day
-- to find that a job has no run.)
SELECT n.job, h.id, h.kind, h.dispatched_at, h.settled_at
FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::bigint[]) n(job, first, last, moment)
CROSS JOIN LATERAL (
    SELECT h.id, h.kind, h.dispatched_at, h.settled_at FROM history h
    WHERE (h.job, h.id) >= (n.job, n.first) AND (h.job, h.id) < (n.job, n.last)
      AND h.id >= $5::uuid AND h.id < $6::uuid AND h.state <> {RunState::Skipped}
    ORDER BY h.job DESC, h.id DESC LIMIT $7) h
WHERE h.dispatched_at < n.moment AND h.settled_at > n.moment
ORDER BY n.job, h.id DESC
