-- get_run, list_runs: runs of history by id.
SELECT {history h}
FROM unnest($1::uuid[]) n(id) JOIN history h ON h.id = n.id
