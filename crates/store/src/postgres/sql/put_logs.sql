-- append_log: the heads and the tails of what runs say.
INSERT INTO run_logs (run, head, tail, total) SELECT * FROM unnest($1::uuid[], $2::bytea[], $3::bytea[], $4::bigint[])
ON CONFLICT (run) DO UPDATE SET head = excluded.head, tail = excluded.tail, total = excluded.total
