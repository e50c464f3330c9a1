-- report, lapse: runs have ended.
WITH checkpoint AS (DELETE FROM checkpoints WHERE run = ANY($1::uuid[]))
DELETE FROM handed WHERE run = ANY($1::uuid[])
