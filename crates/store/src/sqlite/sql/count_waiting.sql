-- count_waiting: runs that wait for something outside of their jobs, by what that is.
SELECT wait_reason, count(*) FROM live INDEXED BY live_wait WHERE wait_reason IS NOT NULL GROUP BY wait_reason
