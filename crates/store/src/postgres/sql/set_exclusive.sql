-- fire, start_run, change_job and others: from now on the ends of runs mean something to their jobs or to one that waits,
-- or do not any more. One that settles meanwhile has waited for the row, and finds it changed.
UPDATE live l SET exclusive = n.exclusive FROM unnest($1::uuid[], $2::boolean[]) n(id, exclusive) WHERE l.id = ANY(ARRAY[n.id])
