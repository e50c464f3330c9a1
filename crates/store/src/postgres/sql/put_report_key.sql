-- put_report_key: a new one, or one that is wrapped otherwise.
INSERT INTO report_keys (id, created_at, master_key, bytes) VALUES ($1, $2, $3, $4)
ON CONFLICT (id) DO UPDATE SET master_key = excluded.master_key, bytes = excluded.bytes
