-- get_replay: one of a tenant.
SELECT {replay}
FROM replays WHERE id = ?1 AND tenant = ?2
