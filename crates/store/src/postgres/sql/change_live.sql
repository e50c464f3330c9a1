-- settle, withdraw, cancel_run and others: living runs go on otherwise, if they are still as they were read.
UPDATE live l SET claim = n.claim, attempt = n.attempt, state = n.state, due_at = n.due_at, lost = n.lost, ask = n.ask,
                  waiting = n.waiting, dispatched_at = n.dispatched_at, attempts = n.attempts,
                  wait_reason = n.wait_reason, wait_until = n.wait_until
FROM unnest($1::uuid[], $2::integer[], $3::integer[], $4::smallint[], $5::integer[], $6::integer[], $7::smallint[],
            $8::bigint[], $9::integer[], $10::smallint[], $11::boolean[], $12::bigint[], $13::bytea[],
            $14::smallint[], $15::bigint[])
     n(id, claim_was, attempt_was, ask_was, claim, attempt, state, due_at, lost, ask, waiting, dispatched_at, attempts,
       wait_reason, wait_until)
WHERE l.id = ANY(ARRAY[n.id]) AND l.claim IS NOT DISTINCT FROM n.claim_was AND l.attempt = n.attempt_was
  AND l.ask IS NOT DISTINCT FROM n.ask_was
