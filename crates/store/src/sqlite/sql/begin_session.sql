-- begin_session.
INSERT INTO sessions ({session}) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
