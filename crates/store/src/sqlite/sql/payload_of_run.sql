-- payloads: a living run's own.
SELECT payload FROM live WHERE id = ?1
