-- list_runs, open: the days that have history, newest first, and from when those are kept that stragglers were written to.
SELECT day, kept_from FROM ranges ORDER BY day DESC
