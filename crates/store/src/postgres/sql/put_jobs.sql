-- fire, settle and others: where jobs stand now.
UPDATE jobs j SET state = n.state, state_at = n.state_at, next_slot = n.next_slot, due_at = n.due_at,
                  slot_last = n.slot_last, runs_made = n.runs_made, catch_up_to = n.catch_up_to,
                  manual_runs = nullif(n.manual_runs, 0), failures = n.failures
FROM unnest($1::uuid[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
            $8::bigint[], $9::integer[], $10::integer[])
     n(id, state, state_at, next_slot, due_at, slot_last, runs_made, catch_up_to, manual_runs, failures)
WHERE j.id = ANY(ARRAY[n.id])
