-- create_user: a name that is taken writes nothing.
INSERT INTO users ({user}) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING
