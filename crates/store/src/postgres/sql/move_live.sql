-- settle: the next attempt, or the same once more, if the run is still as it was read.
UPDATE live l SET attempt = n.attempt, state = n.state, due_at = n.due_at, lost = n.lost, attempts = n.attempts,
                  claim = NULL, ask = NULL, dispatched_at = n.dispatched_at
FROM unnest($1::uuid[], $2::integer[], $3::integer[], $4::smallint[], $5::integer[], $6::smallint[], $7::bigint[],
            $8::integer[], $9::bytea[], $10::bigint[])
     n(id, claim, was, ask, attempt, state, due_at, lost, attempts, dispatched_at)
WHERE l.id = n.id AND l.claim IS NOT DISTINCT FROM n.claim AND l.attempt = n.was AND l.ask IS NOT DISTINCT FROM n.ask
