-- append_log, get_log: what runs have said so far. Whoever appends has locked their live rows.
SELECT run, head, tail, total FROM run_logs WHERE run = ANY($1::uuid[])
