-- claim_due: the views in which a run of one lane is free, does not wait and is due, whoever leases its shard; the earliest first.
-- What others are claiming or changing at this moment is left out, so that nobody waits.
SELECT id, job FROM live
WHERE lane = $1 AND claim IS NULL AND NOT waiting AND due_at <= $2 AND ($4::smallint[] IS NULL OR shard = ANY($4))
ORDER BY due_at, id LIMIT $3
FOR UPDATE SKIP LOCKED
