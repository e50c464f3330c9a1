-- join: a new presence.
INSERT INTO presences (id, node, joined_at) VALUES (?1, ?2, ?3)
