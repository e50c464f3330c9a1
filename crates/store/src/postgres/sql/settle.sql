-- settle: the views in which a run ends whose claim is the one named, no other run waits and the job neither rests nor counts
-- it as a failure or after one. Runs leave the live table for history; what enters is what left. All other views take the slow
-- path.
WITH me AS MATERIALIZED (
    SELECT no FROM presences WHERE id = $26 AND ended_at IS NULL FOR KEY SHARE),
gone AS (
    DELETE FROM live l
    USING unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::smallint[], $5::bigint[], $6::uuid[], $7::bigint[],
                     $8::smallint[], $9::smallint[], $10::smallint[], $11::integer[], $12::integer[], $13::integer[],
                     $14::bigint[], $15::bigint[], $16::smallint[], $17::integer[], $18::text[], $19::bytea[],
                     $20::bigint[], $21::bigint[], $22::bytea[], $23::bytea[], $24::text[], $25::text[])
          n({history})
    WHERE l.id = ANY(ARRAY[n.id]) AND coalesce(l.claim, 0) = (SELECT no FROM me) AND l.attempt = n.attempt
      AND (NOT l.exclusive
           OR ((SELECT 1 FROM live o WHERE o.job = l.job AND o.waiting LIMIT 1) IS NULL
               AND (SELECT j.state = {JobState::Active} AND j.next_slot IS NULL
                              OR j.failures IS NOT NULL AND (j.failures > 0 OR n.state = {RunState::Dead})
                    FROM jobs j WHERE j.id = l.job) IS NOT TRUE))
    RETURNING n.*, l.job AS of_job, l.exclusive, l.payload AS own),
entered AS (
    INSERT INTO history ({history})
    SELECT id, job, tenant, kind, slot, replay_of, due_at, lane, state, reason, attempt, lost, version, dispatched_at,
           settled_at, outcome, status, error, output, stretch_last, stretch_count, own, attempts, note, actor
    FROM gone)
SELECT id, of_job, exclusive FROM gone
