-- take: runs of one lane that nobody holds, the earliest first. What others are taking or changing at this moment is passed
-- over, so that nobody waits.
SELECT id, job FROM live
WHERE lane = $1 AND claim IS NULL AND NOT waiting AND due_at <= $2 AND ($4::smallint[] IS NULL OR shard = ANY($4))
ORDER BY due_at, id LIMIT $3
FOR UPDATE SKIP LOCKED
