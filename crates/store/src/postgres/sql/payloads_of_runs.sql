-- payloads: those of living runs.
SELECT id, payload FROM live WHERE id = ANY($1::uuid[])
