-- list_replays: those of a tenant, newest first.
SELECT {replay}
FROM replays WHERE tenant = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3
