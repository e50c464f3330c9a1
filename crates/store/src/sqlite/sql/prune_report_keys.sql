-- put_report_key: the oldest go.
DELETE FROM report_keys WHERE id NOT IN (SELECT id FROM report_keys ORDER BY created_at DESC, id DESC LIMIT ?1)
