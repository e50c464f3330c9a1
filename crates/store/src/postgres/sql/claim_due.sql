-- claim_due: the views in which a run of one lane is free, does not wait and is due, whoever leases its shard; those on time, then
-- the backlog, the earliest first in either. What others are claiming or changing at this moment is left out, so that nobody
-- waits. (Rows are compared so that only the index that leads with the lane has their order: others would be led through all
-- lanes.)
WITH on_time AS MATERIALIZED (
  SELECT id, job FROM live
  WHERE (lane, due_at) >= ($1, $5::bigint) AND (lane, due_at) <= ($1, $2)
    AND claim IS NULL AND NOT waiting AND ($4::smallint[] IS NULL OR shard = ANY($4))
  ORDER BY lane, due_at, id LIMIT $3
  FOR UPDATE SKIP LOCKED
), backlog AS MATERIALIZED (
  SELECT id, job FROM live
  WHERE (lane, due_at) >= ($1, '-9223372036854775808'::bigint) AND (lane, due_at) <= ($1, $2) AND (lane, due_at) < ($1, $5)
    AND claim IS NULL AND NOT waiting AND ($4::smallint[] IS NULL OR shard = ANY($4))
  ORDER BY lane, due_at, id LIMIT least($6, $3 - (SELECT count(*) FROM on_time))
  FOR UPDATE SKIP LOCKED
)
SELECT id, job FROM on_time UNION ALL SELECT id, job FROM backlog
