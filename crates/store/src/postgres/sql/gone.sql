-- settle: which of these presences have ended.
SELECT id FROM presences WHERE id = ANY($1::uuid[]) AND ended_at IS NOT NULL
