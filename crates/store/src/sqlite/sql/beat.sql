-- beat: marks on the claims of one presence, oldest run first.
SELECT id, ask FROM live INDEXED BY live_ask WHERE claim = ?1 AND ask IS NOT NULL ORDER BY id
