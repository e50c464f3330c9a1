-- report, lapse: a run has ended.
DELETE FROM checkpoints WHERE run = ?1
