-- settle: whether any run waits for another to end.
SELECT 1 FROM live INDEXED BY live_waiting WHERE waiting = 1 LIMIT 1
