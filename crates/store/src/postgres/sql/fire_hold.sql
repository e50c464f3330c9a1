-- fire: a presence is held, before it is looked at what it leases; what gives leases up waits for us, or we for it.
SELECT 1 FROM presences WHERE id = $1 AND ended_at IS NULL FOR KEY SHARE
