-- retain: days before yesterday.
DELETE FROM run_counts WHERE day < $1
