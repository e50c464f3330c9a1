-- join: a new presence.
INSERT INTO presences (id, node, version, tables, parts, level, kinds, joined_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
