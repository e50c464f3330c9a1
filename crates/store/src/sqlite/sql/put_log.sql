-- append_log: the head and the tail of what a run says.
INSERT INTO run_logs (run, head, tail, total) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (run) DO UPDATE SET head = excluded.head, tail = excluded.tail, total = excluded.total
