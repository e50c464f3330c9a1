-- settle, cancel_run and others: runs leave the live table, if they are still as they were read.
DELETE FROM live l
USING unnest($1::uuid[], $2::integer[], $3::integer[], $4::smallint[], $5::boolean[])
      n(id, claim, attempt, ask, exclusive)
WHERE l.id = ANY(ARRAY[n.id]) AND l.claim IS NOT DISTINCT FROM n.claim AND l.attempt = n.attempt
  AND l.ask IS NOT DISTINCT FROM n.ask AND l.exclusive = n.exclusive
