-- orphans: presences that have ended, as this snapshot has them.
SELECT no, id, ended_at, node FROM presences WHERE ended_at IS NOT NULL
