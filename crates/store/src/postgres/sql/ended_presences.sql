-- orphans: presences that have ended.
SELECT no, ended_at, node FROM presences WHERE ended_at IS NOT NULL
