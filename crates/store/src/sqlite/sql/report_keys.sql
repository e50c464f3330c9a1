-- report_keys: the newest first.
SELECT id, created_at, master_key, bytes FROM report_keys ORDER BY created_at DESC, id DESC
