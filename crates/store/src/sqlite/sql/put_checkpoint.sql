-- heartbeat: the last checkpoint of a run.
INSERT INTO checkpoints (run, bytes) VALUES (?1, ?2) ON CONFLICT (run) DO UPDATE SET bytes = excluded.bytes
