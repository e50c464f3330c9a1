-- get_checkpoint: the last one of a run.
SELECT bytes FROM checkpoints WHERE run = ?1
