-- settle and others: a run ends long after the day that it belongs to, and keeps it.
INSERT INTO stragglers (day, kept_from) VALUES ($1, $2)
ON CONFLICT (day) DO UPDATE SET kept_from = greatest(stragglers.kept_from, excluded.kept_from)
