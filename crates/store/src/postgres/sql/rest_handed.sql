-- report, lapse: attempts have ended, and their runs go on.
UPDATE handed SET trusted_until = NULL WHERE run = ANY($1::uuid[])
