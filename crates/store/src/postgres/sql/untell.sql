-- change_job, withdraw, settle: what was passed over is decided anew.
DELETE FROM history WHERE id = ANY($1::uuid[])
