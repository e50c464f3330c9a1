-- orphans: presences that have ended, as this snapshot has them.
SELECT no, id, ended_at FROM presences WHERE ended_at IS NOT NULL
