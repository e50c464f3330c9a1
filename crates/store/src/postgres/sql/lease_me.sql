-- lease: a presence that lives; what it is writing under its leases is written first.
SELECT no FROM presences WHERE id = $1 AND ended_at IS NULL FOR UPDATE
