-- change_job, withdraw, settle: skip records of slots that are decided again.
DELETE FROM history WHERE id = ANY($1::uuid[])
