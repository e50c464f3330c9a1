-- count_secrets: at a start, and when a rewrap ends.
SELECT master_key, count(*) FROM secrets GROUP BY master_key ORDER BY master_key
