-- list_runs, open: the days that have history, newest first.
SELECT day FROM ranges ORDER BY day DESC
