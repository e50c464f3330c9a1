-- heartbeat: the last checkpoints of runs.
INSERT INTO checkpoints (run, bytes) SELECT * FROM unnest($1::uuid[], $2::bytea[])
ON CONFLICT (run) DO UPDATE SET bytes = excluded.bytes
