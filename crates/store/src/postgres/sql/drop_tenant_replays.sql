-- retain: replays of a tenant that goes.
DELETE FROM replays WHERE tenant = $1
