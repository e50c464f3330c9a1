-- claims: what one presence holds, in the order of ids.
SELECT id, attempt, due_at, ask FROM live
WHERE coalesce(claim, 0) = (SELECT no FROM presences WHERE id = $1)
  AND id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000')
ORDER BY id LIMIT $3
