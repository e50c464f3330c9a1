-- due_of: whether a job is due.
SELECT 1 FROM jobs WHERE id = ?1 AND due_at <= ?2
