-- secret_change: the latest.
SELECT change FROM secret_changes WHERE one = true
