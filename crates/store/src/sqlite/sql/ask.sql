-- change_job, cancel_run, fire: marks a run for its holder.
UPDATE live SET ask = ?2 WHERE id = ?1
