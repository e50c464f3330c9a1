-- fire, start_run, cancel_run: whether runs have ended, and how.
SELECT h.id, h.state, h.reason, h.tenant FROM unnest($1::uuid[]) n(id) JOIN history h ON h.id = n.id
