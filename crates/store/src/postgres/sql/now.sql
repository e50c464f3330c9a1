-- claim, orphans: what time it is.
SELECT coalesce($1::bigint, now_ms())
