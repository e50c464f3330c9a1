-- retain: from when days are kept that were written to long after their end; one, or all.
SELECT day, kept_from FROM stragglers WHERE $1::bigint IS NULL OR day = $1
