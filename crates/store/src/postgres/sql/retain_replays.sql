-- retain: replays that ended long enough ago, the oldest first.
DELETE FROM replays WHERE id IN (SELECT id FROM replays WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2)
