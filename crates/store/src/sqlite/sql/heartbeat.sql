-- heartbeat: the views in which the attempt is handed over already. It is trusted again, unless it is to end;
-- whoever's clock is behind takes no trust away.
UPDATE handed SET beaten_at = ?3, progress = coalesce(?4, progress),
                  trusted_until = iif(cancelled, trusted_until, max(trusted_until, min(?3 + beat_within, timeout_at)))
WHERE run = ?1 AND attempt = ?2 AND trusted_until IS NOT NULL
RETURNING cancelled, trusted_until
