-- count_waiting: runs that wait for something outside of their jobs, by what that is.
SELECT wait_reason, count(*) FROM live WHERE wait_reason IS NOT NULL AND waiting GROUP BY wait_reason
