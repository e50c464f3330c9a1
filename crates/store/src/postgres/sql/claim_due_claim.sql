-- claim_due: the views that `claim_due.sql` has found and locked, less those whose job someone is changing. Runs get their holder;
-- each is an attempt at its job as it stands now.
UPDATE live l SET claim = $2, state = {RunState::Ready}, version = coalesce((SELECT j.version FROM jobs j WHERE j.id = l.job), l.version)
FROM unnest($1::uuid[]) n(id) WHERE l.id = ANY(ARRAY[n.id])
RETURNING {live $4}, $3::uuid
