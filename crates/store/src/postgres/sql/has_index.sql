-- open: whether an index is whole; nothing if there is none.
SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)
