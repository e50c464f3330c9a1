-- report, lapse: an attempt has ended, and its run goes on.
UPDATE handed SET trusted_until = NULL WHERE run = ?1
