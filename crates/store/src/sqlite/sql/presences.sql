-- open, and after a rollback: every presence that is known.
SELECT no, id, ended_at, node, version, tables, parts, joined_at, level, kinds, low_water FROM presences
