-- retain: presences that have ended and hold nothing.
DELETE FROM presences p WHERE p.ended_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM live WHERE live.claim = p.no)
RETURNING p.no
