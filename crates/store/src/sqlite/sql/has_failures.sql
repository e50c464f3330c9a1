-- settle: whether a job counts failures in a row that a success would end.
SELECT 1 FROM jobs WHERE id = ?1 AND failures > 0
