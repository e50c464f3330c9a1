-- append_log, get_log: what a run has said so far.
SELECT head, tail, total FROM run_logs WHERE run = ?1
