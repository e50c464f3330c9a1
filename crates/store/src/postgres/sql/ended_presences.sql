-- orphans: presences that have ended.
SELECT no, ended_at FROM presences WHERE ended_at IS NOT NULL
