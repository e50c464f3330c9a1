-- claim_due: the views in which a run of one lane is free, does not wait and is due, whoever leases its shard; the earliest first.
-- What others are claiming or changing at this moment is left out, so that nobody waits. (Rows are compared so that only the
-- index that leads with the lane has their order: others would be led through all lanes.)
SELECT id, job FROM live
WHERE (lane, due_at) >= ($1, '-9223372036854775808'::bigint) AND (lane, due_at) <= ($1, $2)
  AND claim IS NULL AND NOT waiting AND ($4::smallint[] IS NULL OR shard = ANY($4))
ORDER BY lane, due_at, id LIMIT $3
FOR UPDATE SKIP LOCKED
