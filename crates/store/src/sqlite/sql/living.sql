-- fire, start_run: how many of a job's runs move, and how many wait.
SELECT count(*) FILTER (WHERE waiting = 0), count(*) FILTER (WHERE waiting = 1) FROM live WHERE job = ?1
