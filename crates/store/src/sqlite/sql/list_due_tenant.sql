-- list_due: whether a planned job is of the tenant that is read for.
SELECT 1 FROM jobs WHERE id = ?1 AND tenant = ?2
