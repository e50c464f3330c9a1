-- list_due: so many planned jobs are read, in the order of plan; those of the tenant $5 whose ids end in less than $6 of
-- 65,536 are wanted, and the last one is where to go on. One more is read, to know whether there are more. Read first, so
-- that the limit stops the read.
WITH seen AS MATERIALIZED (
    SELECT {place} AS place, j.due_at, j.id, j.tenant FROM jobs j
    WHERE j.due_at IS NOT NULL AND ({place}, j.id) > ($1, $2) AND {place} <= $3
    ORDER BY {place}, j.id LIMIT $4::bigint + 1
), numbered AS (
    SELECT id, due_at, row_number() OVER (ORDER BY place, id) AS number, count(*) OVER () AS seen,
        tenant = $5 AND (get_byte(uuid_send(id), 14) << 8) + get_byte(uuid_send(id), 15) < $6::integer
            AND due_at > $7 AND due_at <= $8 AS is_wanted
    FROM seen)
SELECT id, due_at, is_wanted, number = $4 AND seen > $4 AS is_last
FROM numbered WHERE number <= $4 AND (is_wanted OR number = $4)
