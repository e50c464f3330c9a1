-- claim, claim_due: runs get their holder as decided, if nobody holds them still.
UPDATE live l SET claim = $1, state = n.state, due_at = n.due_at, version = n.version
FROM unnest($2::uuid[], $3::smallint[], $4::bigint[], $5::integer[]) n(id, state, due_at, version)
WHERE l.id = ANY(ARRAY[n.id]) AND l.claim IS NULL
