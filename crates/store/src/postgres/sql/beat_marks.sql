-- beat: marks on the claims of one presence, oldest run first.
SELECT l.id, l.ask FROM live l
WHERE l.claim = (SELECT no FROM presences WHERE id = $1) AND l.ask IS NOT NULL ORDER BY l.id
