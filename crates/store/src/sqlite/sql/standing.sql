-- fire: where a job stands.
SELECT version, state, state_at, next_slot, slot_last, runs_made, catch_up_to, manual_runs, failures FROM jobs WHERE id = ?1
