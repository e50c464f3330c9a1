-- create_replay: how many of a tenant are under way.
SELECT count(*) FROM replays WHERE ended_at IS NULL AND tenant = ?1
