-- running_replays: those that are under way, the oldest first.
SELECT {replay}
FROM replays WHERE ended_at IS NULL ORDER BY id LIMIT ?1
