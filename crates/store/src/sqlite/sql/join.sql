-- join: a new presence.
INSERT INTO presences (id, node, version, tables, parts, joined_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
