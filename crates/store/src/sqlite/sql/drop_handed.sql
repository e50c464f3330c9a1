-- report, lapse: a run has ended.
DELETE FROM handed WHERE run = ?1
